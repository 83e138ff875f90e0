"""Data → one self-contained HTML page, which opens from disk without network or scripts."""
