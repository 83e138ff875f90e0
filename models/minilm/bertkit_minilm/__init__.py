"""The model that comes with bertkit: words/ predicts words, vectors/ computes vectors of texts."""
