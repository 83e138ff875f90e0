"""Task embed: vectors of texts, of which those that belong together are close."""
