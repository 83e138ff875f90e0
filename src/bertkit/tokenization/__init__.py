"""Text to token ids and back with WordPiece; vocabulary training. Start with `tokenizer.py`."""
