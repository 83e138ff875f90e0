"""A model over files, and a model's files: predictions, descriptions, conversion, export."""
