"""Log probabilities of texts by a left-to-right model, which predicts many tokens at once."""

from collections.abc import Iterator, Sequence

from bertkit.inference.text_scorer import Query, TextScorer
from bertkit.tokenization.tokenizer import Tokenizer


class LeftToRightScorer(TextScorer):
    """Scores texts with a model that predicts each token from those before it."""

    def list_queries(self, pieces: Sequence[int]) -> Iterator[Query]:
        """Yield the queries that score a text."""
        return ask_left_to_right(pieces, self.loaded.tokenizer, self.loaded.max_length)


def ask_left_to_right(pieces: Sequence[int], tokenizer: Tokenizer, limit: int) -> Iterator[Query]:
    """Yield the queries that together predict each token of a text, and its end, once.

    A text of more tokens than the limit is split into overlapping parts: in every part but the
    first, the first half is context.
    """
    tokens = [*pieces, tokenizer.sep_id]
    room = limit - 1
    begin, scored = 0, 0  # of the part, and the tokens scored so far
    while scored < len(tokens):
        part = tokens[begin : begin + room]
        first = scored - begin
        places = range(first, len(part))  # [CLS] comes first: each state predicts what follows it
        yield Query([tokenizer.cls_id, *part], range(0), places, part[first:])
        scored = begin + len(part)
        begin = scored - room // 2
