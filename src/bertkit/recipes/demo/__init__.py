"""A BERT from nothing in a few minutes: its text is the documentation that comes with Python."""
