"""Heads that learn on a frozen encoder: `solver.py` solves one, `features.py` trains one by steps.

Both read hidden states that are computed once; read `solver.py` first.
"""
