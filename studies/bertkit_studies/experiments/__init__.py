"""The studies, one per file; read `masking.py` first."""
