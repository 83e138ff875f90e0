"""Documents in, shards out, and the order in which examples are seen; no torch."""
