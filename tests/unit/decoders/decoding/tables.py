"""A model whose scores are a table: any beginning has its own, and all can be looked through."""

import math
from itertools import product

import numpy as np
import torch

END = 1
TABLE = np.random.default_rng(0).normal(scale=2.0, size=(4093, 16)).astype(np.float32)


class TableSequences:
    """Scores of the next token, of its own for each beginning.

    Args:
        sources: a number for each, on which its scores depend.
        num_words: of the vocabulary; 1 is the end.
        bonus: added to the end's score.
    """

    def __init__(self, sources, num_words, *, bonus=0.0):
        self.num_words, self.bonus = num_words, bonus
        self.rows = [(source, ()) for source in sources]
        self.num_passes = 0

    def scores(self):
        self.num_passes += 1
        return torch.tensor(np.stack([self.scores_of(*row) for row in self.rows]))

    def scores_of(self, source, tokens):
        place = hash((source, *tokens)) % len(TABLE)  # of numbers alone, the same in each process
        scores = TABLE[place, : self.num_words].copy()
        scores[END] += self.bonus
        return scores

    def select(self, rows):
        self.rows = [self.rows[row] for row in rows.tolist()]

    def extend(self, tokens):
        self.rows = [
            (source, (*before, token))
            for (source, before), token in zip(self.rows, tokens.tolist(), strict=True)
        ]

    def log_probability(self, source, tokens):
        """Of the tokens one after the other, the end included where it is among them."""
        total = 0.0
        for place, token in enumerate(tokens):
            scores = self.scores_of(source, tokens[:place]).astype(np.float64)
            total += scores[token] - math.log(np.exp(scores).sum())
        return total

    def all_answers(self, source, max_tokens, penalty):
        """Every sequence up to a length, the best first: (score, tokens without end, finished)."""
        words = [word for word in range(self.num_words) if word != END]
        answers = []
        for length in range(max_tokens + 1):
            for tokens in product(words, repeat=length):
                is_finished = length < max_tokens
                whole = (*tokens, END) if is_finished else tokens
                score = self.log_probability(source, whole) / len(whole) ** penalty
                answers.append((score, tokens, is_finished))
        return sorted(answers, reverse=True)
