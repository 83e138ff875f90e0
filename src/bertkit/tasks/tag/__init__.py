"""Tagging of words: named entities, parts of speech; read `task.py` first.

Source: Devlin et al. 2018, section 5.3: T_i of a word's first piece, then a linear layer.
"""
