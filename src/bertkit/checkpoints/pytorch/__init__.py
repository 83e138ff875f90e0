"""`pytorch_model.bin`, read without running it; read `pytorch_file.py` first."""
