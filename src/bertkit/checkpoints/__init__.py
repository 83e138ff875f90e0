"""Checkpoint formats: config dict and named tensors ↔ files; read `formats.py` first."""
