"""BERT. Read `encoder`, then `heads` (pre-training, section 3.1), then `fine_tuning` (section 4).

`pretrained`, `weights` and `architectures` load and save checkpoints; `neighbor_heads` are initial
weights; the rest are variants.
"""
