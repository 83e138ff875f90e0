"""Which token comes next: greedy, beam search, sampling; knows no model."""
