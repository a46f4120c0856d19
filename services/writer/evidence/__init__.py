"""What a lesson may rest on: a run cleaned, and what of its attempts and its change counts."""
