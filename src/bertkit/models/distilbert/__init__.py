"""DistilBERT: half of BERT's layers, trained to predict what BERT predicts; without segments.

Source: Sanh et al. 2019, "DistilBERT, a distilled version of BERT: smaller, faster, cheaper and
lighter".
"""
