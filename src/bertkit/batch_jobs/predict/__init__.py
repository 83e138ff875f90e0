"""A fine-tuned model answers for texts, records and files."""
