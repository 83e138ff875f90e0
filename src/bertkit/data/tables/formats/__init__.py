"""One file a format of tables."""
