"""Regression: predict a number for a text or a pair of texts; read `task.py` first.

Source: Devlin et al. 2018, section 4.1 (STS-B): C, then a linear layer with one output.
"""
