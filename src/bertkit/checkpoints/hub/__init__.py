"""Hugging Face Hub models: file selection, download, cache; read `resolve.py` first."""
