"""ModernBERT: an encoder of today's parts, for long texts.

Positions are rotations of queries and keys. Most layers attend to the tokens nearby, and some to
all. Layer norms come before sub-layers, feed-forward networks are gated, and nothing has biases.

Source: Warner et al. 2024, "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for
Fast, Memory Efficient, and Long Context Finetuning and Inference".
"""
