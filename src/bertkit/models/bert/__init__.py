"""BERT: its config, its encoder, its heads."""
