"""BERT. Read `encoder`, then `heads` (pre-training, section 3.1), then `fine_tuning` (section 4).

`config` has the sizes. `causal` and `feature_based` are variants (section 5.3 has the second).
`pretrained`, `weights` and `architectures` are the way from and to files, and say nothing about the
model.
"""
