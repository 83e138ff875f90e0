"""Give texts, or pairs of texts, a number.

Source: Devlin et al. 2018, section 4.1 (STS-B): C, then a linear layer with one output.
"""
