"""ModernBERT: an encoder with the parts of recent language models, for long texts.

Positions are rotary (RoPE). Two of three layers attend to a window of tokens nearby, the others to
all. Layer norms come before sub-layers (pre-norm), feed-forward networks are gated (GeGLU), and no
layer of the encoder has biases.

Source: Warner et al. 2024, "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for
Fast, Memory Efficient, and Long Context Finetuning and Inference".
"""
