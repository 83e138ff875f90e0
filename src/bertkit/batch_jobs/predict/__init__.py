"""Predict texts, records and files with a fine-tuned model; read `run.py` first."""
