"""A fine-tuned model is held against a file whose answers are known."""
