"""Models that write: continuations, translations, summaries; read `generator.py` first."""
