"""Graphs of models in ONNX, to run and to export; start with `graph.py`, then `packed.py`."""
