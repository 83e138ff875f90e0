"""The recipe `train-tokenizer`: raw text → a vocabulary; read `run.py` first."""
