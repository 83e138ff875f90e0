"""What a checkpoint is; read `description.py` first."""
