"""Blanks are found, filled from all words or some, and streamed."""

from itertools import count, islice

import pytest
import torch
from tests.unit.inference.small import WORDS, build_model, save_small, start

from bertkit.base.errors import InputError
from bertkit.inference import fill_mask, stream
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.loading import LoadedModel
from bertkit.inference.pipeline import NamedInput
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
    assert start(FillMask, loaded).encode_window([NamedInput("one", text)]) == [
        (text, encoding.ids)
    ]


def test_candidates_are_those_of_the_padded_door(loaded):
    batch = loaded.tokenizer.encode_batch([TEXT], read_mask=True)
    arrays = (batch.input_ids, batch.token_type_ids, batch.attention_mask)
    scores = loaded.model(*map(torch.from_numpy, arrays)).prediction_logits[0]
    expected = scores[[2, 4]].softmax(dim=-1).topk(3)
    filled = start(FillMask, loaded, precision="fp32")(TEXT, top_k=3)
    found = [[(c.token_id, c.probability) for c in blank] for blank in filled.blanks]
    assert [[id_ for id_, _ in blank] for blank in found] == expected.indices.tolist()
    shares = [[pytest.approx(share, abs=1e-6) for share in row] for row in expected.values.tolist()]
    assert [[share for _, share in blank] for blank in found] == shares
    first, second = (blank[0].token.removeprefix("##") for blank in filled.blanks)
    assert filled.filled == f"the {first} saw {second} cat"
    assert all(loaded.tokenizer.vocabulary[c.token_id] == c.token for c in filled.blanks[0])


def test_targets_keep_their_probabilities_among_all_words(loaded):
    (every, _) = start(FillMask, loaded)(TEXT, top_k=100).blanks
    assert len(every) == loaded.tokenizer.vocab_size
    assert sum(c.probability for c in every) == pytest.approx(1.0)
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
    (blank,) = start(FillMask, LoadedModel(model.eval(), tokenizer))("the [MASK]", top_k=100).blanks
    assert len(blank) == tokenizer.vocab_size
    assert sum(c.probability for c in blank) < 0.01


def test_how_many_blanks_are_scored_at_a_time_changes_nothing(loaded, monkeypatch):
    texts = [TEXT, "a [MASK]", "[MASK] [MASK] [MASK]"]
    whole = start(FillMask, loaded)(texts)
    monkeypatch.setattr(fill_mask, "BLANKS_AT_A_TIME", 1)
    for one, other in zip(whole, start(FillMask, loaded)(texts), strict=True):
        assert [[c.token for c in b] for b in one.blanks] == [
            [c.token for c in b] for b in other.blanks
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


@pytest.mark.usefixtures("small_windows")
def test_what_was_before_a_wrong_text_is_given(loaded):
    texts = ["a [MASK]", "the [MASK]", NamedInput("line 7", "a [MASK]"), NamedInput("line 9", "a")]
    filled = start(FillMask, loaded).stream(texts)
    assert [next(filled).text for _ in range(3)] == ["a [MASK]", "the [MASK]", "a [MASK]"]
    with pytest.raises(InputError, match=r"line 9 \('a'\) has no \[MASK\]"):
        next(filled)


def test_texts_without_a_name_are_numbered(loaded):
    with pytest.raises(InputError, match=r"text 2 \('the'\) has no"):
        list(start(FillMask, loaded).stream(iter(["a [MASK]", "the"])))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a [MASK]", "expected a list of texts, got one text"),
        (["a [MASK]", 3], r"expected a text, got 3 \(int\)"),
    ],
)
def test_what_is_no_text_is_refused(loaded, texts, message):
    with pytest.raises(InputError, match=message):
        list(start(FillMask, loaded).stream(texts))


def test_another_engine_fills_the_same(loaded, tmp_path):
    pytest.importorskip("onnxruntime")
    save_small(tmp_path)
    fill = FillMask.load(tmp_path, device="cpu", engine="onnx")
    assert fill.engine.name == "onnx"
    exact = start(FillMask, loaded, "torch", "fp32")
    for one, other in zip(fill(TEXT).blanks, exact(TEXT).blanks, strict=True):
        assert [c.token for c in one] == [c.token for c in other]
        assert [c.probability for c in one] == pytest.approx(
            [c.probability for c in other], abs=1e-5
        )


def test_no_texts_have_no_results(loaded):
    assert start(FillMask, loaded)([]) == []


def test_a_text_longer_than_the_model_is_refused(loaded):
    with pytest.raises(InputError, match=r"the text .* has 25 tokens, and the model takes 24"):
        start(FillMask, loaded)("the " * 22 + "[MASK]")
