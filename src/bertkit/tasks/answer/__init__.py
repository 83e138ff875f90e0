"""Extractive question answering, with "no answer" as in SQuAD 2.0; read `task.py` first.

Source: Devlin et al. 2018, sections 4.2 and 4.3: a start and an end vector over all T_i.
"""
