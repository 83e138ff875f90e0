"""Static charts and figures as SVG; read `picture.py` first."""
