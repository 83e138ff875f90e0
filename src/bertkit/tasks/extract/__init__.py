"""Extractive summarization: select the sentences that make a summary; read `task.py` first.

Source: Liu 2019, "Fine-tune BERT for Extractive Summarization".
"""
