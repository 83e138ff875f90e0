"""An encoder described once, in the steps of a graph; read `graph.py` first, then `bert.py`."""
