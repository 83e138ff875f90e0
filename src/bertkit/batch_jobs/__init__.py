"""Jobs that run a model over files, one folder per job; read `embed/run.py` first."""
