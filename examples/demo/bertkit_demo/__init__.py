"""The demo: pre-train a small BERT on Python's documentation in minutes; read `run.py` first."""
