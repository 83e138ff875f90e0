"""Still drawings: charts, diagrams and figures as SVG; read `picture.py` first."""
