"""Export any checkpoint to a folder that other programs run; read `run.py` first."""
