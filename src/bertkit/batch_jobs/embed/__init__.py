"""A file of texts → a file of vectors."""
