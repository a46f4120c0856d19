"""A channel's memory in a model's words: what it is asked, and what of its answer counts."""
