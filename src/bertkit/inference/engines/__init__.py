"""Programs that run an encoder, behind one door: packed ids in, hidden states out."""
