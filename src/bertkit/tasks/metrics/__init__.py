"""Metrics: pure functions of arrays, equal to the official scorers. Start with `examples.py`."""
