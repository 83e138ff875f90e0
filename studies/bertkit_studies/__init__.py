"""Reproductions of published experiments on your own runs; read `study.py` first."""
