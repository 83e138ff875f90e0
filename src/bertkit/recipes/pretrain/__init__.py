"""The recipe `pretrain`: shards → a pre-trained BERT; read `run.py` first."""
