"""Train recurrent baselines with the same loop and text as their peers; read `run.py` first."""
