"""`bertkit evaluate`: a fine-tuned model against a file whose answers are known."""
def evaluate(model: str, data: str, /) -> None:
    """Evaluate."""
