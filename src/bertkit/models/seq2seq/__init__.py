"""A sequence in, another one out: an encoder that reads, and a decoder that writes."""
