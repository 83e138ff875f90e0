"""Text to token ids and back: WordPiece, Unigram and byte-level BPE; vocabulary training.

Start with `tokenizer.py`.
"""
