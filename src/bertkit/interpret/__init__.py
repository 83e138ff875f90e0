"""Interpretation of a BERT: attention capture, head ablation and views of both."""
