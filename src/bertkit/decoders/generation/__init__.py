"""Text generation: continuations, translations and summaries; read `generator.py` first."""
