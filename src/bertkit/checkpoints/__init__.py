"""Checkpoint formats: (config dict, named tensors) ↔ files. Knows names, and no model class."""
