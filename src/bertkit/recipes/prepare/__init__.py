"""The recipe `prepare`: raw text → token shards; read `run.py` first."""
