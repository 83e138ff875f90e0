"""Whole jobs, one folder each: `settings.py` says what can be chosen, `run.py` does it."""
