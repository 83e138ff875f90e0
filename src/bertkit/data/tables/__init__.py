"""Readers of tables, files with numbered rows; read `records.py` and `texts.py` first."""
