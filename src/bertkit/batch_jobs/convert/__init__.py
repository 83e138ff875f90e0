"""Convert any checkpoint into a Hugging Face folder; read `run.py` first."""
