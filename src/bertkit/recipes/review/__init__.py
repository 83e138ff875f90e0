"""The review of labeled rows: label errors, repeats, honest numbers; read `run.py` first."""
