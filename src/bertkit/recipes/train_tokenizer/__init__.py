"""Raw text to a vocabulary."""
