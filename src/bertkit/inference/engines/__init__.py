"""Runtimes of the encoder with one interface, batches to hidden states; read `engine.py` first."""
