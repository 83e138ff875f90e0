"""Features are the hidden states of each text by itself, whatever its company."""

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import save_small

from bertkit.base.errors import InputError, NonFiniteError, SettingsError
from bertkit.inference.embeddings import features as module
from bertkit.inference.embeddings.features import (
    CHARS_PER_TOKEN,
    FeatureExtractor,
    FeaturePlan,
    PairEncoder,
    TextFeatures,
)
from bertkit.inference.embeddings.settings import FeatureSettings
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.stream import TextCounts
from bertkit.inference.torch_model import TorchModel
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.nn.packing import PackedBatch

TEXTS = ["the cat saw a dog .", "", ("a cat", "the hat ."), "hat", "zebra", "the " * 40]


@pytest.fixture
def loaded(small_folder):
    return TorchModel.load(BertModel, small_folder, "cpu")


@pytest.fixture
def extract(loaded):
    return FeatureExtractor(loaded, [TorchEngine(loaded.model)], loaded.opened)


def test_a_thread_gets_its_layers_whatever_another_one_chooses(loaded):
    class Contested(list):
        def __setitem__(self, place, engine):
            super().__setitem__(place, TorchEngine(loaded.model, [0, 2]))

    engines = Contested([TorchEngine(loaded.model)])
    options = FeatureSettings(layers=[1])
    extract = FeatureExtractor(loaded, engines, loaded.opened, options)
    assert extract.engine.layers == (1, 2)


def read_alone(loaded: TorchModel, text: TextFeatures) -> tuple[list[np.ndarray], np.ndarray]:
    """The hidden states of a text by itself, and C."""
    encoding = text.encoding
    batch = PackedBatch.from_sequences([encoding.ids], [encoding.token_type_ids])
    with torch.no_grad():
        states = list(loaded.model.encoder.hidden_states(batch))
        sequence = loaded.model.pooler(states[-1], batch)[0]
    return [state.numpy() for state in states], sequence.numpy()


@pytest.mark.parametrize(
    ("layers", "combine", "by_hand"),
    [
        ([-1], "concat", lambda states: states[2]),
        ([-1, -2], "concat", lambda states: np.concatenate([states[2], states[1]], axis=1)),
        ([0, 2], "concat", lambda states: np.concatenate([states[0], states[2]], axis=1)),
        ([-1, 0], "sum", lambda states: states[2] + states[0]),
        ([0, 1, 2], "mean", lambda states: (states[0] + states[1] + states[2]) / 3),
        ([2, 0, -2], "none", lambda states: np.stack([states[2], states[0], states[1]], axis=1)),
        (None, "concat", lambda states: np.concatenate([states[2], states[1]], axis=1)),
    ],
)
def test_features_are_those_of_each_text_by_itself(loaded, extract, layers, combine, by_hand):
    for found in extract(TEXTS, layers=layers, combine=combine):
        states, sequence = read_alone(loaded, found)
        assert_close(found.features, by_hand(states))
        assert_close(found.sequence, sequence)
        assert found.features.dtype == found.sequence.dtype == np.float32
        assert len(found.features) == len(found.encoding.tokens)


def test_tokens_segments_and_places_are_told(extract):
    single, empty, pair, _, unknown, cut = extract(TEXTS)
    assert single.encoding.tokens == ["[CLS]", "the", "cat", "saw", "a", "dog", ".", "[SEP]"]
    assert single.encoding.offsets[2] == (4, 7)
    assert empty.encoding.tokens == ["[CLS]", "[SEP]"]
    assert pair.encoding.token_type_ids == [0, 0, 0, 0, 1, 1, 1, 1]
    assert unknown.encoding.tokens == ["[CLS]", "[UNK]", "[SEP]"]
    assert len(cut.encoding) == 24
    assert [each.is_truncated for each in (single, empty, pair, unknown, cut)] == [
        *[False, False, False, False, True]
    ]
    assert extract("hat").encoding.tokens == ["[CLS]", "hat", "[SEP]"]
    assert extract(("a", "hat")).encoding.tokens[3] == "hat"
    assert extract([]) == []


def test_the_default_is_the_last_four_layers(loaded):
    config = BertConfig(**{**loaded.model.config.to_dict(), "num_hidden_layers": 6})
    plan = FeaturePlan.build(FeatureSettings(), config)
    assert (plan.requested, plan.layers) == ((-1, -2, -3, -4), (6, 5, 4, 3))
    assert plan.shape == (32,)


def test_without_a_pooler_c_is_the_vector_of_cls(loaded, small_folder, extract):
    assert extract.sequence_from == "pooler"
    loaded.model.pooler = None
    extract = FeatureExtractor(loaded, [TorchEngine(loaded.model)], loaded.opened)
    assert extract.sequence_from == "[CLS]"
    found = extract("the cat", layers=[-1])
    assert np.array_equal(found.sequence, found.features[0])
    identity = extract.with_options(layers=(0,), max_length=9).identity
    assert len(identity.pop("model_sha256")) == 64
    assert identity == {
        "model": small_folder.name,
        "layers": (0,),
        "combine": "concat",
        "sequence_from": "[CLS]",
        "max_length": 9,
        "precision": "fp32",
    }


@pytest.mark.parametrize("limit", [1, 9, 20])
def test_parts_of_a_window_keep_the_order(extract, monkeypatch, limit):
    expected = extract(TEXTS)
    monkeypatch.setattr(module, "WINDOW_TOKENS", limit)
    encoded = extract.encode_window(list(extract.read(TEXTS)))
    assert len(next(extract.divide(encoded))) == {1: 1, 9: 2, 20: 4}[limit]
    for one, other in zip(extract.stream(TEXTS), expected, strict=True):
        assert one.encoding == other.encoding
        assert_close(one.features, other.features)


def test_wide_features_make_small_parts(extract, monkeypatch):
    monkeypatch.setattr(module, "WINDOW_BYTES", 9 * 16 * 4)  # nine tokens of two layers
    encoded = extract.encode_window(list(extract.read(TEXTS)))
    assert len(next(extract.divide(encoded))) == 2


def test_what_is_odd_is_counted(extract):
    counts = TextCounts()
    texts = [*TEXTS, "a\0cat", "\0", ("", ""), ("zebra", "a\0")]
    found = list(extract.stream(texts, counts=counts))
    assert counts == TextCounts(
        texts=10,
        tokens=sum(len(each.encoding) for each in found),
        text_tokens=38,
        unknown_tokens=3,
        empty=3,
        unknown_only=2,  # without its NUL, a\0cat is a word that nobody knows
        truncated=1,
        with_nul=3,
    )


def test_the_end_of_a_far_too_long_text_is_not_read(small_folder, monkeypatch):
    loaded = TorchModel.load(BertModel, small_folder)
    encode, tokenizer = PairEncoder(loaded, 5), loaded.tokenizer
    seen: list[int] = []
    real = tokenizer.encode

    def watch(*parts: str, **options: int):
        seen.extend(map(len, parts))
        return real(*parts, **options)

    monkeypatch.setattr(tokenizer, "encode", watch)
    for text in ("the cat " * 10_000, " " * 1000 + "the cat " * 1000, ("a hat " * 5000, "dog")):
        parts = text if isinstance(text, tuple) else (text,)
        assert encode(text).encoding == real(*parts, max_length=5)
    assert seen[0] <= 5 * CHARS_PER_TOKEN + 8
    padded = encode(" " * 1000 + "the cat " + " " * 1000).encoding
    assert padded.tokens[1:-1] == ["the", "cat"]
    assert not encode("the" * 1000).is_truncated  # one unknown word
    late = encode("dog" + " " * 1000 + "the cat").encoding
    assert late.tokens[1:-1] == ["dog", "the", "cat"]
    word = " " * 300 + "cat" + "s" * 60 + "x the"  # as a whole unknown; its beginning is not
    assert encode(word).encoding.tokens[1:-1] == ["[UNK]", "the"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": [3]}, "there is no layer 3"),
        ({"layers": []}, "give at least one layer"),
        ({"layers": [-1, 2]}, r"layers \(-1, 2\) has duplicates: counted from 0, it is \(2, 2\)"),
        ({"max_length": 25}, "max_length is 25, and this model takes at most 24"),
        ({"max_length": 2}, "max_length must be at least 3, got 2"),
        ({"combine": "max"}, "combine must be 'concat', 'sum', 'mean' or 'none', got 'max'"),
        ({"layer": [1]}, "has no setting layer; it has layers, combine"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(extract, settings, message):
    with pytest.raises(SettingsError, match=message):
        extract("hat", **settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (("a", None), r"expected a text, got None"),
        (("a", "b", "c"), "expected a text or a pair of texts, got 3 texts"),
        ((), "got 0 texts"),
    ],
)
def test_what_is_no_text_is_refused(extract, text, message):
    with pytest.raises(InputError, match=message):
        extract([text])


def test_a_model_of_single_texts_takes_no_pair(tmp_path):
    save_small(tmp_path, type_vocab_size=1)
    extract = FeatureExtractor.load(tmp_path, device="cpu", engine="torch")
    assert extract("a hat").features.shape == (4, 16)
    with pytest.raises(InputError, match=r"single texts \(type_vocab_size is 1\)"):
        extract(("a", "hat"))


def test_features_that_are_not_finite_are_refused(loaded, extract):
    with torch.no_grad():
        loaded.model.encoder.layers[1].feed_forward_norm.weight[0] = torch.inf
    with pytest.raises(NonFiniteError, match="the model's features aren't finite"):
        extract("the cat")
