"""Table formats, one per module; `../origins.py` and `../texts.py` list them."""
