"""How good predictions are: pure functions over arrays, equal to the official scorers."""
