"""One folder a fine-tuning task: what it reads, its loss, and how its scores become an answer."""
