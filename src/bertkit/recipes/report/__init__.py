"""Runs, finished or not, as pages."""
