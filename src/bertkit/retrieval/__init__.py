"""Semantic search over the vectors of a corpus; read `search_index.py` first."""
