"""Corpora, tables, token shards and example order; imports no torch. Read `shards.py` first."""
