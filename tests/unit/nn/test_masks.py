"""Masks say which tokens a token may attend to."""

import pytest
import torch

from bertkit.base.errors import SettingsError
from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL


def test_all_tokens_or_earlier_ones_may_be_attended_to():
    assert BIDIRECTIONAL.find_allowed(2, 3).all()
    assert torch.equal(CAUSAL.find_allowed(3, 3), torch.ones(3, 3).tril().bool())
    with pytest.raises(SettingsError, match="there are 2 queries and 3 keys"):
        CAUSAL.find_allowed(2, 3)
