"""Settings that can't be meant together."""

import pytest
from pydantic import ValidationError

from bertkit.decoding.settings import DecodingSettings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sample": True, "beams": 2}, "two ways"),
        ({"temperature": 0.5}, "need sample"),
        ({"top_k": 3}, "need sample"),
        ({"top_p": 0.9, "beams": 2}, "need sample"),
        ({"num_answers": 3, "beams": 2}, "at most beams"),
        ({"min_tokens": 8, "max_tokens": 8}, "less than max_tokens"),
        ({"beams": 0}, "beams"),
        ({"beams": 100_000}, "beams"),
        ({"sample": True, "temperature": 0.0}, "temperature"),
        ({"sample": True, "temperature": 1e-300}, "temperature"),
        ({"sample": True, "top_p": 1.5}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"length_penalty": float("nan")}, "length_penalty"),
        ({"beam": 3}, "beam"),
    ],
)
def test_what_cannot_be_meant_is_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        DecodingSettings(**values)


def test_settings_that_fit():
    assert DecodingSettings(beams=4, num_answers=4).max_tokens is None
    assert DecodingSettings(sample=True, num_answers=9, top_k=3, top_p=1.0).top_k == 3
