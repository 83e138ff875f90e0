"""Evaluation of a model on labeled or held-out data."""
