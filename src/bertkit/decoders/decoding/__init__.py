"""Greedy decoding, beam search and sampling, independent of any model. Start with `search.py`."""
