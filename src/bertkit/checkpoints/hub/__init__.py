"""Models by name: which files a model needs, fetched and cached; read `resolve.py` first."""
