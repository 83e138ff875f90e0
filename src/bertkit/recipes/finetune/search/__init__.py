"""Several fine-tuning runs, one after the other; read `run.py` first."""
