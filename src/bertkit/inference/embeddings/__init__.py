"""Embeddings of texts, tokens and words from an encoder; read `embedder.py` first."""
