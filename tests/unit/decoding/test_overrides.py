"""What a command chooses is looked at before a model is there, and with what its folder says."""

import pytest
from pydantic import ValidationError

from bertkit.base.errors import SettingsError
from bertkit.decoding.overrides import DecodingOverrides, override_decoding
from bertkit.decoding.settings import DecodingSettings


@pytest.mark.parametrize(
    "wrong", [{"beams": 0}, {"length_penalty": 11}, {"top_p": 2.0}, {"max_tokens": 0}, {"seed": -1}]
)
def test_bounds_hold_before_a_model_is_there(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        DecodingOverrides(**wrong)


def test_a_seed_is_for_what_is_drawn():
    seeded = DecodingOverrides(seed=7)
    with pytest.raises(SettingsError, match="seed is for what is drawn; it needs sample"):
        override_decoding(DecodingSettings(beams=2), seeded)
    drawn = DecodingSettings(sample=True, seed=3)
    assert override_decoding(drawn, seeded).seed == 7
    assert override_decoding(drawn, DecodingOverrides(seed=0)).seed == 0
    folder = DecodingSettings(seed=3)  # that was saved, and draws nothing
    assert override_decoding(folder, DecodingOverrides()).seed == 3
    assert (
        override_decoding(folder, DecodingOverrides(seed=0)).seed == 0
    )  # as settings files have it
