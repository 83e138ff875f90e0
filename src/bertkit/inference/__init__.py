"""Inference: models that are loaded once and return typed results; read `predictor.py` first."""
