"""Semantic search over the vectors of a corpus; read `index.py` first."""
