"""Folders of sentence-transformers models; read `folder.py` first."""
