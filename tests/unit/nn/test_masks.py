"""Masks say which tokens a token may attend to."""

import pytest
import torch

from bertkit.base.errors import SettingsError
from bertkit.nn.attention import SelfAttention
from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL, MASKS
from bertkit.nn.settings import MaskSettings


def test_a_mask_is_that_of_the_layer():
    assert SelfAttention(8, 2, 0.0).mask is BIDIRECTIONAL
    assert SelfAttention(8, 2, 0.0, is_causal=True).mask is CAUSAL


def test_all_tokens_or_earlier_ones_may_be_attended_to():
    assert BIDIRECTIONAL.find_allowed(2, 3).all()
    assert torch.equal(CAUSAL.find_allowed(3, 3), torch.ones(3, 3).tril().bool())
    with pytest.raises(SettingsError, match="there are 2 queries and 3 keys"):
        CAUSAL.find_allowed(2, 3)


@pytest.mark.parametrize(("causal", "mask"), [(False, BIDIRECTIONAL), (True, CAUSAL)])
def test_settings_name_a_mask(causal, mask):
    assert MASKS[MaskSettings(causal=causal).mask_name] is mask
