"""Figures of attention and of planes of vectors."""
