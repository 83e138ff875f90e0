"""Drawing: shares, what is left out, and rows of their own."""

import math

import numpy as np
import pytest
import torch

from bertkit.decoding.sampling import draw_tokens, sharpen
from bertkit.decoding.settings import DecodingSettings

SHARES = [0.4, 0.3, 0.2, 0.1]


def draw(num_rows, **settings):
    scores = torch.tensor(SHARES).log().expand(num_rows, -1)
    generators = [np.random.default_rng((7, row)) for row in range(num_rows)]
    return draw_tokens(scores, DecodingSettings(sample=True, **settings), generators)


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
    assert counts.tolist() == pytest.approx(expected, abs=0.03)
    assert all((share == 0) == (count == 0) for share, count in zip(expected, counts, strict=True))


def test_a_row_is_drawn_by_its_own_generator():
    assert draw(9)[:3].tolist() == draw(3).tolist()


def test_what_is_barred_is_never_drawn():
    scores = torch.zeros(500, 4)
    scores[:, [0, 3]] = -math.inf
    generators = [np.random.default_rng(row) for row in range(500)]
    found = draw_tokens(scores, DecodingSettings(sample=True), generators)
    assert set(found.tolist()) == {1, 2}


def test_more_than_the_vocabulary_leaves_all():
    scores = torch.randn(3, 4)
    settings = DecodingSettings(sample=True, top_k=9, top_p=1.0)
    torch.testing.assert_close(sharpen(scores, settings), scores)
