"""The merged memory in words, by a model: what it is asked, what it answered, and what of it counts."""
