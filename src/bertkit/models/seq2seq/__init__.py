"""Encoder-decoder models; read `model.py` first."""
