"""The recipe `seq2seq`: pairs of texts → an encoder-decoder model; read `run.py` first."""
