"""The server: models behind HTTP; read `worker.py`, `models.py` and `routes.py` in this order."""
