"""google-research's TensorFlow checkpoints; read `checkpoint_reader.py` first."""
