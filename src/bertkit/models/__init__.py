"""Model families, one folder each; read `bert/encoder.py` first."""
