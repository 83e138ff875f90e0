"""Log probabilities of texts by a left-to-right model, which predicts many tokens at once."""

from collections.abc import Iterator, Sequence

from bertkit.inference.text_scorer import Query, TextScorer
from bertkit.tokenization.long_texts import TextCutter
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
    scored = 0  # tokens so far
    for part in TextCutter(room, room - room // 2).cut(len(tokens)):
        # [CLS] comes first: each state predicts what follows it.
        sequence = [tokenizer.cls_id, *tokens[part.start : part.stop]]
        places = range(scored - part.start, len(part))
        yield Query(sequence, range(0), places, tokens[scored : part.stop])
        scored = part.stop
