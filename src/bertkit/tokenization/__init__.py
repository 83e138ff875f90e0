"""Text to token ids and back: normalize, split, WordPiece, and train a vocabulary."""
