"""Text → typed result, by a model that is loaded once."""
