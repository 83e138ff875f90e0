"""Shards → a pre-trained BERT."""
