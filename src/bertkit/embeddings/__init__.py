"""Vectors of texts, tokens and words, by an encoder; read `embedder.py` first."""
