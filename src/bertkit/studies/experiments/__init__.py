"""One file a study."""
