"""A model over files, and files of models: features, predictions, conversion, export."""
