"""The layers of the Transformer as pure tensor code: no files, settings or checkpoint formats.

Read `embeddings` (Devlin et al. 2018, figure 2), `attention` (Vaswani et al. 2017, equation 1),
`block` (equation 2, figure 1). `parts` is what families of encoders differ in, `relative` their
relative positions (their numbers are in `positions`), and `masks` says which tokens a token attends
to. For speed: `packing`, `head_blocks`, `kernels`, `dropout`, `vocabulary_loss`.
"""
