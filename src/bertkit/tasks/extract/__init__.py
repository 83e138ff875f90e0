"""Which sentences of a text say the most.

Source: Liu 2019, "Fine-tune BERT for Extractive Summarization".
"""
