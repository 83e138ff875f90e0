"""Batches change no result, and what can't be answered is refused."""

from functools import partial

import pytest
import torch
from tests.unit.inference.small import start

from bertkit.base.errors import InputError, SettingsError
from bertkit.inference.engines import engine
from bertkit.inference.engines.engine import TorchEngine
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence

TEXTS = ["the cat saw the [MASK] .", "a [MASK]", "[MASK] lost the [MASK]", "the dog saw a [MASK] ."]
PAIRS = [("the cat saw a dog .", "the hat"), ("a", "dog"), ("the cat lost", "a cat saw the hat .")]


@pytest.fixture
def seen(monkeypatch):
    """The lengths of each batch that an engine gets."""
    lengths: list[tuple[int, ...]] = []
    real = TorchEngine.__call__

    def call(engine, batch):
        lengths.append(batch.lengths)
        return real(engine, batch)

    monkeypatch.setattr(TorchEngine, "__call__", call)
    return lengths


@pytest.fixture
def small_batches(monkeypatch):
    """From when this is called, a batch has 16 tokens."""
    return partial(monkeypatch.setitem, engine.TOKENS_PER_BATCH, "cpu", 16)


def test_blanks_are_the_same_in_many_batches(loaded, seen, small_batches):
    whole = start(FillMask, loaded, "torch")(TEXTS)
    assert len(seen) == 1
    assert [each.text for each in whole] == TEXTS
    small_batches()
    split = start(FillMask, loaded, "torch")(TEXTS)
    assert seen[1:] == [(8, 8), (6, 4)]
    for one, other in zip(whole, split, strict=True):
        assert (one.text, one.filled) == (other.text, other.filled)
        for first, second in zip(one.blanks, other.blanks, strict=True):
            assert [c.token_id for c in first] == [c.token_id for c in second]
            assert [c.probability for c in first] == pytest.approx(
                [c.probability for c in second], abs=1e-6
            )


def test_pairs_are_the_same_in_many_batches(loaded, seen, small_batches):
    whole = start(NextSentence, loaded, "torch")(PAIRS)
    for wrong in (["a text"], [("one", "two", "three")], [7]):
        with pytest.raises(InputError, match=r"^pair 1: expected a tuple of two texts, got"):
            start(NextSentence, loaded, "torch")(wrong)
    assert len(seen) == 1
    small_batches()
    assert start(NextSentence, loaded, "torch")(PAIRS) == pytest.approx(whole, abs=1e-6)
    assert seen[1:] == [(12,), (11, 5)]


def test_a_pair_is_judged_as_the_padded_door_judges_it(loaded):
    batch = loaded.tokenizer.encode_batch(*map(list, zip(*PAIRS, strict=True)))
    assert batch.token_type_ids.any()
    arrays = (batch.input_ids, batch.token_type_ids, batch.attention_mask)
    logits = loaded.model(*map(torch.from_numpy, arrays)).seq_relationship_logits
    expected = logits.softmax(dim=-1)[:, 0].tolist()
    assert start(NextSentence, loaded, "torch", "fp32")(PAIRS) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("engine", "precision", "most"), [("auto", "fp32", 1e-6), ("torch", "bf16", 0.02)]
)
def test_a_pair_has_its_probability_in_each_precision(loaded, engine, precision, most):
    expected = start(NextSentence, loaded, "torch", "fp32")(PAIRS)
    found = start(NextSentence, loaded, engine, precision)(PAIRS)
    assert found == pytest.approx(expected, abs=most)
    assert (found != expected) or precision == "fp32"


@pytest.mark.parametrize(
    "pair", [("", ""), ("a cat", ""), ("", "a cat"), (" \n", "a"), ("a", "\x00")]
)
def test_an_empty_sentence_is_refused(loaded, pair):
    with pytest.raises(InputError, match="the pair has an empty text"):
        start(NextSentence, loaded)(pair)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, r"the text \(''\) has an empty text"),
        (["a [MASK]", "a"], {}, r"text 2 \('a'\) has no \[MASK\]"),
        ("a [MASK]", {"targets": []}, "targets: .* at least 1 item"),
        ("a [MASK]", {"targets": ["hatless"]}, "'hatless' isn't a single vocabulary entry"),
        ("a [MASK]", {"top_k": 0}, "top_k: .* greater than or equal to 1"),
    ],
)
def test_what_cannot_be_filled_is_refused(loaded, text, options, message):
    with pytest.raises((InputError, SettingsError), match=message):
        start(FillMask, loaded)(text, **options)
