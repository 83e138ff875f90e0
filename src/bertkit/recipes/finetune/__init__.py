"""The recipe `finetune`: a pre-trained encoder → a model for a task; read `run.py` first."""
