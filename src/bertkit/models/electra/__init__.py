"""ELECTRA: BERT's encoder, trained to find words that a smaller model has replaced.

The embeddings may be narrower than the hidden states.

Source: Clark et al. 2020, "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than
Generators".
"""
