"""Classification of texts, or pairs of texts; read `task.py` first.

Source: Devlin et al. 2018, section 4.1: C, then a linear layer.
"""
