"""Jobs that run a model over files, one folder each."""
