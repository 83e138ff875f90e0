"""Label texts, or pairs of texts.

Source: Devlin et al. 2018, section 4.1: C, then a linear layer.
"""
