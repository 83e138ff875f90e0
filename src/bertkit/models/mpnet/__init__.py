"""MPNet: RoBERTa's encoder with relative positions, trained on masked and permuted words.

Each head adds a bias to its scores, by the distance between query and key; all layers share these
biases. Positions are learned, too.

Source: Song et al. 2020, "MPNet: Masked and Permuted Pre-training for Language Understanding".
"""
