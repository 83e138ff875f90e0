"""Records of a run: log, training history, display, report sections; read `log.py` first."""
