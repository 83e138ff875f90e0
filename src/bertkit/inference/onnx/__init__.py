"""Export of models to formats of other programs, such as ONNX. Start with `targets.py`."""
