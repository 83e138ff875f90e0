"""What studies of pre-training have in common and measure; read `pretraining.py` first."""
