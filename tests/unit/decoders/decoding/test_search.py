"""Drawing: shares, what is left out, and rows of their own."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from tests.closeness import close

from bertkit.base.errors import InputError, NonFiniteError, SettingsError
from bertkit.decoders.decoding.search import decode, draw_tokens, stream
from bertkit.decoders.decoding.sequences import DecodingLimits, DecodingSource
from bertkit.decoders.decoding.settings import DecodingSettings

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


SHARES = [0.4, 0.3, 0.2, 0.1]


def draw(num_rows, **settings):
    scores = torch.tensor(SHARES).log().expand(num_rows, -1)
    generators = [np.random.default_rng((7, row)) for row in range(num_rows)]
    return draw_tokens(scores, DecodingSettings(**settings), generators)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, SHARES),
        ({"top_k": 2}, [4 / 7, 3 / 7, 0, 0]),
        ({"top_p": 0.65}, [4 / 7, 3 / 7, 0, 0]),
        ({"top_p": 0.75}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"top_p": 0.01}, [1, 0, 0, 0]),
        ({"temperature": 0.5}, [0.16 / 0.3, 0.09 / 0.3, 0.04 / 0.3, 0.01 / 0.3]),
    ],
)
def test_tokens_come_as_often_as_they_are_likely(settings, expected):
    counts = draw(4000, **settings).bincount(minlength=4) / 4000
    assert counts.tolist() == close(expected, within=0.03)
    assert all((share == 0) == (count == 0) for share, count in zip(expected, counts, strict=True))


SOURCES = [3, 14, 15, 92]


def search(sources=SOURCES, num_words=5, *, limits=None, bonus=0.0, known=None, **settings):
    tables = TableSequences(sources, num_words, bonus=bonus)
    limits = limits or DecodingLimits(END, 5)
    return decode(tables, DecodingSettings(**settings), limits, known)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
def test_enough_beams_find_what_looking_through_everything_finds(penalty):
    tables = TableSequences(SOURCES, 4)
    found = search(
        num_words=4,
        limits=DecodingLimits(END, 4),
        beams=200,  # more than there are beginnings: 3 ** 4
        length_penalty=penalty,
        num_answers=10,
    )
    for source, answers in zip(SOURCES, found, strict=True):
        expected = tables.all_answers(source, 4, penalty)[:10]
        assert [(one.tokens, one.is_finished) for one in answers] == [one[1:] for one in expected]
        scores = [one.score for one in answers]
        assert scores == close([one[0] for one in expected], "float32")
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "settings",
    [{}, {"beams": 3}, {"temperature": 1.0, "num_answers": 2}],
    ids=str,
)
@pytest.mark.parametrize("bonus", [0.0, 2.0])
def test_a_batch_finds_what_each_finds_alone(settings, bonus):
    known = [DecodingSource(number=number) for number in SOURCES]
    together = search(bonus=bonus, known=known, **settings)
    for source, number, found in zip(SOURCES, known, together, strict=True):
        (alone,) = search([source], bonus=bonus, known=[number], **settings)
        assert alone == found


def test_sources_that_are_done_are_not_computed():
    tables = TableSequences(SOURCES, 5, bonus=-40.0)
    limits = DecodingLimits(END, (1, 2, 3, 9))
    sizes = []
    scores = tables.scores
    tables.scores = lambda: sizes.append(len(tables.rows)) or scores()
    found = decode(tables, DecodingSettings(), limits)
    assert sizes == [4, 3, 2, 1, 1, 1, 1, 1, 1]
    assert [len(one.tokens) for (one,) in found] == [1, 2, 3, 9]
    assert not any(one.is_finished for (one,) in found)


@pytest.mark.parametrize("settings", [{}, {"beams": 4}, {"temperature": 1.0}], ids=str)
def test_where_there_is_little_room_its_last_token_may_be_an_end(settings):
    limits = DecodingLimits(END, (1, 2, 3, 9))
    found = search(bonus=40.0, limits=limits, min_tokens=5, **settings)
    assert [len(one.tokens) for (one,) in found] == [0, 1, 2, 5]
    assert all(one.is_finished for (one,) in found)


@pytest.mark.parametrize("seed", range(6))  # the first row must be one that is stuck
def test_a_row_that_is_stuck_keeps_no_other_from_its_end(seed):
    """No two of two words twice: a row goes on to its fourth token, another to its fifth."""
    limits = DecodingLimits(END, 20)
    settings = {"temperature": 1.0, "num_answers": 8, "min_tokens": 5, "no_repeat_ngram": 2}
    found = search(range(12), 3, limits=limits, bonus=30.0, seed=seed, **settings)
    lengths = {(len(one.tokens), one.is_finished) for answers in found for one in answers}
    assert lengths == {(4, False), (5, True)}


@pytest.mark.parametrize("settings", [{}, {"beams": 3}, {"temperature": 1.0}], ids=str)
def test_where_nothing_is_possible_an_answer_is_cut(settings):
    """Every word once, and no end before the tenth."""
    found = search(num_words=4, no_repeat_ngram=1, min_tokens=10, max_tokens=20, **settings)
    for (one,) in found:
        assert sorted(one.tokens) == [0, 2, 3]
        assert not one.is_finished
        assert math.isfinite(one.score)
    nothing = DecodingLimits(END, 5, suppressed_ids=(0, 1, 2, 3))
    for (one,) in search(num_words=4, limits=nothing, **settings):
        assert one.tokens == ()
        assert one.score == 0.0


def test_a_stream_ends_where_nothing_is_possible():
    tables = TableSequences(SOURCES[:1], 4)
    settings = DecodingSettings(no_repeat_ngram=1, min_tokens=10)
    assert sorted(stream(tables, settings, DecodingLimits(END, 20))) == [0, 2, 3]


def test_a_stream_knows_each_token_before_the_next_is_computed():
    tables = TableSequences(SOURCES[:1], 9, bonus=-9.0)
    tokens = stream(tables, DecodingSettings(), DecodingLimits(END, 12))
    for number in range(1, 13):
        next(tokens)
        assert tables.num_passes == number
    assert next(tokens, None) is None


@pytest.mark.parametrize("settings", [{"beams": 2}, {"temperature": 1.0, "num_answers": 2}])
def test_what_cannot_be_shown_while_it_is_written(settings):
    tables = TableSequences(SOURCES[:1], 9)
    with pytest.raises(SettingsError, match="one answer"):
        next(stream(tables, DecodingSettings(**settings), DecodingLimits(END, 12)))


@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_scores_that_are_not_finite_are_refused(value, beams):
    tables = TableSequences(SOURCES, 5)
    tables.scores = lambda: torch.full((4, 5), value)
    with pytest.raises(NonFiniteError, match="finite"):
        decode(tables, DecodingSettings(beams=beams), DecodingLimits(END, 5))


@pytest.mark.parametrize(
    ("max_tokens", "message"), [((5, 0, 5, 5), "no room"), ((5, 5), "4 sources, got 2")]
)
def test_limits_that_do_not_fit(max_tokens, message):
    with pytest.raises(InputError, match=message):
        search(limits=DecodingLimits(END, max_tokens))
