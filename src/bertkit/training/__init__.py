"""The training loop: optimizer, schedule, checkpoints, resume; no BERT. Read `loop.py` first."""
