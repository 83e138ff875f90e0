"""Blanks are filled and pairs are judged, the same in any batches, and what can't be is refused."""

from functools import partial
from itertools import count, islice

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import WORDS, build_model, save_small, start

from bertkit.base.errors import InputError, SettingsError
from bertkit.inference import stream
from bertkit.inference.engines import torch_engine
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import NamedInput
from bertkit.inference.torch_model import TorchModel
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

TEXT = "the [MASK] saw [MASK] cat"


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 2)


@pytest.mark.parametrize(
    "text",
    [
        "[MASK]",
        "[MASK][MASK]",
        "the[MASK]s",
        "a [MASK]. the [SEP] [mask] [ MASK ] [[MASK]]",
        "hats-[MASK]-hats  \t [MASK]\u00a0the\nhat",
        "\ud800[MASK] th\u00e9 \udc00cat \u0000 unknown",
        "\u732b[MASK]\u732b the\u0301[MASK]\u0301 cat",
    ],
)
def test_blanks_are_read_as_the_tokenizer_reads_them(loaded, text):
    encoding = loaded.tokenizer.encode(text, read_mask=True)
    (encoded,) = start(FillMask, loaded).encode_window([NamedInput("one", text)])
    assert (encoded.text, encoded.ids) == (text, encoding.ids)


def test_candidates_are_those_of_the_padded_door(loaded):
    batch = loaded.tokenizer.encode_batch([TEXT], read_mask=True)
    arrays = (batch.input_ids, batch.token_type_ids, batch.attention_mask)
    scores = loaded.model(*map(torch.from_numpy, arrays)).prediction_logits[0]
    expected = scores[[2, 4]].softmax(dim=-1).topk(3)
    filled = start(FillMask, loaded, precision="fp32")(TEXT, top_k=3)
    found = [[(c.token_id, c.probability) for c in blank] for blank in filled.blanks]
    assert [[id_ for id_, _ in blank] for blank in found] == expected.indices.tolist()
    shares = [[close(share, "float32") for share in row] for row in expected.values.tolist()]
    assert [[share for _, share in blank] for blank in found] == shares
    first, second = (blank[0].token.removeprefix("##") for blank in filled.blanks)
    assert filled.filled == f"the {first} saw {second} cat"
    assert all(loaded.tokenizer.vocabulary[c.token_id] == c.token for c in filled.blanks[0])


def test_targets_keep_their_probabilities_among_all_words(loaded):
    (every, _) = start(FillMask, loaded)(TEXT, top_k=100).blanks
    assert len(every) == loaded.tokenizer.vocab_size
    assert sum(c.probability for c in every) == close(1.0, "float32")
    (some, _) = start(FillMask, loaded)(TEXT, targets=["hat", "DOG", "##s"]).blanks
    assert {c.token for c in some} == {"hat", "dog", "##s"}
    assert some == [c for c in every if c.token in {"hat", "dog", "##s"}]
    (best, _) = start(FillMask, loaded)(TEXT, top_k=1, targets=["hat", "dog", "##s"]).blanks
    assert best == some[:1]


def test_an_entry_without_a_word_is_no_candidate():
    model = build_model(vocab_size=40)
    with torch.no_grad():
        model.masked_lm.bias[30:] = 50.0
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *WORDS])
    (blank,) = start(FillMask, TorchModel.in_memory(model.eval(), tokenizer))(
        "the [MASK]", top_k=100
    ).blanks
    assert len(blank) == tokenizer.vocab_size
    assert sum(c.probability for c in blank) < 0.01


def test_words_are_ordered_by_their_scores_where_all_probabilities_are_zero():
    model, tokenizer = build_model(), Tokenizer([*SPECIAL_TOKENS, *WORDS])
    words = ["dog", "cat", "hat"]
    with torch.no_grad():
        for place, word in enumerate(words):
            model.masked_lm.bias[tokenizer.token_to_id(word)] = 100.0 * place - 1000.0
    fill = start(FillMask, TorchModel.in_memory(model.eval(), tokenizer))
    (found,) = fill("the [MASK]", targets=words, top_k=3).blanks
    assert [(one.token, one.probability) for one in found] == [
        (word, 0.0) for word in reversed(words)
    ]


@pytest.mark.usefixtures("small_windows")
def test_a_stream_has_no_end_and_keeps_its_order(loaded):
    read = []

    def texts():
        for number in count():
            read.append(number)
            yield f"{'the ' * (number % 7)}[MASK]"

    filled = list(islice(start(FillMask, loaded).stream(texts()), 5))
    assert [each.text for each in filled] == [f"{'the ' * number}[MASK]" for number in range(5)]
    assert len(read) <= 8  # three windows, and one that is encoded ahead


def test_another_engine_fills_the_same(loaded, tmp_path):
    save_small(tmp_path)
    fill = FillMask.load(tmp_path, device="cpu", engine="openvino", precision="fp32")
    assert fill.engine.name == "openvino"
    exact = start(FillMask, loaded, "torch", "fp32")
    for one, other in zip(fill(TEXT).blanks, exact(TEXT).blanks, strict=True):
        assert [c.token for c in one] == [c.token for c in other]
        assert [c.probability for c in one] == close([c.probability for c in other], "float32")


def test_a_text_longer_than_the_model_is_refused(loaded):
    with pytest.raises(InputError, match=r"the text .* has 25 tokens, and the model takes 24"):
        start(FillMask, loaded)("the " * 22 + "[MASK]")


TEXTS = ["the cat saw the [MASK] .", "a [MASK]", "[MASK] lost the [MASK]", "the dog saw a [MASK] ."]
PAIRS = [("the cat saw a dog .", "the hat"), ("a", "dog"), ("the cat lost", "a cat saw the hat .")]


@pytest.fixture
def seen(monkeypatch):
    """The lengths of each batch that an engine gets."""
    lengths: list[tuple[int, ...]] = []
    real = TorchEngine.place

    def place(engine, ids):
        lengths.append(ids.lengths)
        return real(engine, ids)

    monkeypatch.setattr(TorchEngine, "place", place)
    return lengths


@pytest.fixture
def small_batches(monkeypatch):
    """From when this is called, a batch has 16 tokens."""
    return partial(monkeypatch.setitem, torch_engine.TOKENS_PER_BATCH, "cpu", 16)


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
            assert [c.probability for c in first] == close(
                [c.probability for c in second], "float32"
            )


def test_pairs_are_the_same_in_many_batches(loaded, seen, small_batches):
    whole = start(NextSentence, loaded, "torch")(PAIRS)
    for wrong in (["a text"], [("one", "two", "three")], [7]):
        with pytest.raises(InputError, match=r"^pair 1: expected a tuple of two texts, got"):
            start(NextSentence, loaded, "torch")(wrong)
    assert len(seen) == 1
    small_batches()
    assert start(NextSentence, loaded, "torch")(PAIRS) == close(whole, "float32")
    assert seen[1:] == [(12,), (11, 5)]


def test_a_pair_is_judged_as_the_padded_door_judges_it(loaded):
    batch = loaded.tokenizer.encode_batch(*map(list, zip(*PAIRS, strict=True)))
    assert batch.token_type_ids.any()
    arrays = (batch.input_ids, batch.token_type_ids, batch.attention_mask)
    logits = loaded.model(*map(torch.from_numpy, arrays)).seq_relationship_logits
    expected = logits.softmax(dim=-1)[:, 0].tolist()
    assert start(NextSentence, loaded, "torch", "fp32")(PAIRS) == close(expected, "float32")


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
        ("a [MASK]", {"targets": []}, "targets must have 1 or more values"),
        ("a [MASK]", {"targets": ["hatless"]}, "'hatless' isn't a single vocabulary entry"),
        ("a [MASK]", {"top_k": 0}, "top_k must be at least 1"),
    ],
)
def test_what_cannot_be_filled_is_refused(loaded, text, options, message):
    with pytest.raises((InputError, SettingsError), match=message):
        start(FillMask, loaded)(text, **options)
