"""The one training loop: optimizer, schedule, precision, checkpoints, resume. Knows no BERT."""
