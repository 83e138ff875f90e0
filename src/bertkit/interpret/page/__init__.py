"""The HTML page of attention views; read `attention_view.py` first."""
