"""Runs, finished or not, as pages: curves, speed, settings, machine, examples."""
