"""Folders of sentence-transformers; read `folder.py` first."""
