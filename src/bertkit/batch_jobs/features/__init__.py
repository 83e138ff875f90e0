"""Extract features of a file of texts into a file; read `run.py` first."""
