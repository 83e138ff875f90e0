"""What a run leaves to read: its log, its history, its display; read `log.py` first."""
