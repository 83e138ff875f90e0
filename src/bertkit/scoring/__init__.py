"""Scores of texts without labels, by a language model; read `text_scorer.py` first."""
