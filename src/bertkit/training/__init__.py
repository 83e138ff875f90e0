"""The one training loop: optimiser, schedule, precision, checkpoints, resume. Knows no BERT."""
