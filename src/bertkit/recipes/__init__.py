"""The recipes: complete workflows, one folder each. Read a recipe's `run.py` first."""
