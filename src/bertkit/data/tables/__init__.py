"""Tables: files whose rows are read one after the other, each by its number."""
