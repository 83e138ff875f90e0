"""DistilBERT: a BERT with half the layers, distilled from BERT; without segments and pooler.

Source: Sanh et al. 2019, "DistilBERT, a distilled version of BERT: smaller, faster, cheaper and
lighter".
"""
