"""Models as ONNX files, for other programs; start with `graph.py`, then `padded.py`."""
