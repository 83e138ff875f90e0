"""Evaluate a fine-tuned model on labeled data; read `run.py` first."""
