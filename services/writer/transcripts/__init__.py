"""What the implementer did in a run, extracted from its session transcripts without a model (spec 4.6)."""
