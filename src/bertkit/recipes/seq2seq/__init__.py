"""Pairs of texts → a model that writes the second when it reads the first."""
