"""BERT. Read `encoder`, then `heads` (pre-training, section 3.1), then `fine_tuning` (section 4).

`config` has the sizes; `pretrained` and `weights` load and save checkpoints; `neighbor_heads` are
initial weights; `feature_based` has heads that only bertkit has. Without torch: `architectures` has
the classes' names, heads and shapes, `arrays` their weights, `feature_head` and `poolings` what
stands behind the encoder.
"""
