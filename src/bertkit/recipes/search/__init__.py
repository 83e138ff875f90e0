"""Search a file of texts by meaning; the vectors are kept beside it."""
