"""Pre-training objectives: how examples are planned, masked and scored; read `bert.py` first."""
