"""The commands of the wing: generate, translate, summarize, and how to train for them."""
