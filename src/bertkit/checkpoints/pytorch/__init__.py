"""Safe reader of `pytorch_model.bin`; read `pytorch_file.py` first."""
