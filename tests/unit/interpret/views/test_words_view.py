"""The mask view tells words as read and hidden, and is there for models that fill words in."""

import json

import pytest
import torch
from tests.unit.inference.small import save_small

from bertkit.base.errors import NonFiniteError
from bertkit.interpret.ablation import HeadName
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.views import attention as view_module
from bertkit.interpret.views.attention import collect_words
from bertkit.interpret.views.view import ViewInputs


def look(inspected, text, *heads):
    names = [HeadName(*head) for head in heads]
    return ViewInputs(inspected, inspected.observe(inspected.read(text), names))


def test_masks_are_told_once_for_both_and_a_long_text_is_only_read(inspected, monkeypatch):
    data = collect_words(look(inspected, "the [MASK] saw a hat"))
    assert data["masks"] == [2]
    assert [place["token"] for place in data["hidden"]] == [1, 2, 3, 4, 5]
    assert data["hidden"][1] == data["read"][1]
    assert data["hidden"][0] != data["read"][0]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    monkeypatch.setattr(view_module, "MAX_GUESSED_TOKENS", 4)
    assert collect_words(look(inspected, "the cat"))["hidden"] is not None
    assert collect_words(look(inspected, "the cat saw"))["hidden"] is None


def test_heads_that_are_off_are_off_here_too(inspected):
    whole, without = (
        collect_words(look(inspected, "the cat", *heads)) for heads in ((), ((1, 1), (2, 2)))
    )
    assert whole["read"] != without["read"]
    assert whole["hidden"] != without["hidden"]


def test_scores_that_are_not_finite_are_refused(tmp_path):
    save_small(tmp_path / "small")
    inspected = InspectedModel.load(tmp_path / "small")
    torch.nn.init.constant_(inspected.model.masked_lm.bias, torch.nan)
    with pytest.raises(NonFiniteError, match="the scores of the head of small aren't finite"):
        collect_words(look(inspected, "the cat saw a hat"))
