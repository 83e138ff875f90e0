"""The parts of the Transformer as tensor code: no files, no settings, no names of formats.

The papers, in this order:

- `embeddings`: word + position + segment (Devlin et al. 2018, figure 2); sines and cosines (Vaswani
  et al. 2017, section 3.5);
- `attention`: `SelfAttention`, then `attend_spelled_out` (equation 1);
- `block`: feed-forward (equation 2), and the two sums with their norms (figure 1, left);
- `cross_attention` and `decoder_block`: figure 1, right.

What makes them fast: `packing` and `placement` (no padding), `growing` (the KV cache), `dropout`,
`vocabulary_loss`, and `batching` (what shares a batch). Variants: `pre_norm`, `recurrent`.
"""
