"""Hyperparameter search: several fine-tuning runs in sequence; read `run.py` first."""
