"""Transformer layers. Read `embeddings`, `attention`, `block`, then `decoder_block`.

For speed: `packing`, `head_layout`, `key_value_cache`, `dropout`, `vocabulary_loss`, `batching`.
"""
