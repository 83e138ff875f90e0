"""Self-contained HTML report pages, figures and tables; read `report.py` first."""
