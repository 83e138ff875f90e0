"""Readers of tables, files with numbered rows; read `records.py` and `texts.py` first.

`formats/__init__.py` lists the file formats.
"""
