"""ELECTRA: BERT's encoder, trained as a discriminator of words that a generator has replaced.

The embeddings may be narrower than the hidden states; a linear layer projects them.

Source: Clark et al. 2020, "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than
Generators".
"""
