"""How many tokens of a model a text takes, estimated without the model's tokenizer."""

BYTES_PER_TOKEN = 3
"""Prose has four to five bytes a token; paths, identifiers and numbers, which lessons are full of, have fewer."""


def count_tokens(text: str) -> int:
    """Rather too many than too few."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)
