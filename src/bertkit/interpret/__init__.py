"""What a BERT does inside: captured attention, heads switched off, and views of both."""
