"""The server: models behind HTTP; read `service.py`, `models.py` and `routes.py` in this order."""
