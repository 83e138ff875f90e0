"""RoBERTa: BERT without next sentence prediction and segments, trained longer on more text.

XLM-RoBERTa, of 100 languages, and CamemBERT, of French, are the same model with other vocabularies.

Source: Liu et al. 2019, "RoBERTa: A Robustly Optimized BERT Pretraining Approach"; Conneau et al.
2020, "Unsupervised Cross-lingual Representation Learning at Scale".
"""
