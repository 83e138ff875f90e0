"""A pre-trained encoder becomes a model for a task."""
