"""Models for other programs: one file a target, and the graphs that they are made of."""
