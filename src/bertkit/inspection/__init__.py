"""Descriptions of checkpoints, made without running them; read `description.py` first."""
