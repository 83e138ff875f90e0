"""Decoders: left-to-right models and sequence to sequence; generate, summarize, translate."""
