"""Settings that can't be meant together."""

import pytest
from pydantic import ValidationError

from bertkit.base.errors import SettingsError
from bertkit.decoders.decoding.settings import (
    DecodingOverrides,
    DecodingSettings,
    override_decoding,
)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"temperature": 1.0, "beams": 2}, "choose one of them"),
        ({"num_answers": 3, "beams": 2}, "at most `beams`"),
        ({"min_tokens": 8, "max_tokens": 8}, "less than `max_tokens`"),
        ({"beams": 0}, "beams"),
        ({"beams": 100_000}, "beams"),
        ({"num_answers": 1025, "beams": 1024}, "num_answers"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": 1e-300}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"length_penalty": float("nan")}, "length_penalty"),
        ({"beam": 3}, "beam"),
    ],
)
def test_what_cannot_be_meant_is_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        DecodingSettings(**values)


def test_a_seed_is_for_what_is_drawn():
    seeded = DecodingOverrides(seed=7)
    with pytest.raises(SettingsError, match="seed is for sampling; it needs temperature, top_k"):
        override_decoding(DecodingSettings(beams=2), seeded)
    drawn = DecodingSettings(temperature=1.0, seed=3)
    assert override_decoding(drawn, seeded).seed == 7
    assert override_decoding(drawn, DecodingOverrides(seed=0)).seed == 0
    folder = DecodingSettings(seed=3)  # that was saved, and draws nothing
    assert override_decoding(folder, DecodingOverrides()).seed == 3
    assert (
        override_decoding(folder, DecodingOverrides(seed=0)).seed == 0
    )  # as settings files have it
