"""Fine-tuning tasks, one folder each: data, loss, decoding, metrics; read `task.py` first."""
