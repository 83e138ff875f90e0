"""Pre-training objectives: how examples are planned, corrupted and scored."""
