"""Recurrent networks: baselines to compare BERT with; read `reader.py` first."""
