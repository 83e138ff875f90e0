"""Report pages of runs, finished or not: curves, speed, settings; read `run.py` first."""
