"""Studies: a question from the literature, asked of runs that differ in one thing."""
