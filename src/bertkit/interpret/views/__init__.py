"""Views of what a BERT does: each collects numbers and has a script that draws them."""
