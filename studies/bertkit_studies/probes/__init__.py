"""Shared pre-training and measurements of the studies; read `pretraining.py` first."""
