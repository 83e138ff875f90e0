"""Embed a file of texts into a file of vectors; read `run.py` first."""
