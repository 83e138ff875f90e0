"""Text to token ids and back: normalise, split, WordPiece, and train a vocabulary."""
