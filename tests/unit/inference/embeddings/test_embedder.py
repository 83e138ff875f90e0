"""Texts become vectors in their order, whoever shares their batch."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.closeness import assert_close
from tests.unit.inference.small import WORDS, build_model, build_sentence_model, save_small

from bertkit.base.errors import SettingsError
from bertkit.checkpoints.sentence_modules import POOLING_FLAGS
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.inference import stream
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.pooling import POOLINGS
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.stream import TextCounts
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer

TEXTS = ["the cat saw a dog .", "", "a hat", "zebra", "the dog lost the hat - a dog saw the cat ."]


@pytest.fixture(scope="module")
def sentence_folder(tmp_path_factory):
    """The small model, with mean, a dense layer and scaling behind it."""
    folder = tmp_path_factory.mktemp("sentences")
    save_small(folder)
    torch.manual_seed(1)
    write_sentence_model(folder, build_sentence_model(torch.nn.Linear(8, 5)))
    return folder


def load(folder: Path, **choices: object) -> Embedder:
    return Embedder.load(folder, EmbedderSettings(engine="torch", precision="fp32", **choices))


def states_of(folder: Path, text: str) -> list[np.ndarray]:
    """Hidden states of one text, by the model itself."""
    ids = Tokenizer.load(folder).encode(text).ids
    with torch.no_grad():
        batch = PackedBatch.from_single([ids])
        return [state.numpy() for state in build_model().eval().encoder.hidden_states(batch)]


BY_HAND = {  # sentence-transformers has the others
    "first_last_mean": lambda states: ((states[1] + states[-1]) / 2).mean(axis=0),
    "last_four_concat": lambda states: np.concatenate(
        [states[layer].mean(axis=0) for layer in (-1, -2, -3, -4)]
    ),
    "last_four_sum": lambda states: sum(states[-4:]).mean(axis=0),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_each_pooling_is_what_its_name_says(tmp_path, name):
    save_small(tmp_path, num_hidden_layers=4)
    embedder = load(tmp_path, pooling=(name,))
    with torch.no_grad():
        batch = PackedBatch.from_single([Tokenizer.load(tmp_path).encode(TEXTS[0]).ids])
        model = build_model(num_hidden_layers=4).eval()
        states = [state.numpy() for state in model.encoder.hidden_states(batch)]
    vectors = embedder(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert_close(vectors[0], BY_HAND[name](states), "float32")
    assert BY_HAND.keys() == POOLINGS.keys() - set(POOLING_FLAGS.values())


def test_no_texts_are_no_vectors(small_folder):
    assert load(small_folder)([]).shape == (0, 8)
    assert list(load(small_folder).stream([])) == []


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join), min_size=2, max_size=9)
)
@hypothesis_settings(max_examples=25)
def test_a_text_has_one_vector_whoever_shares_its_batch(small_folder, texts):
    embedder = load(small_folder)
    together = embedder(texts)
    for text, vector in zip(texts, together, strict=True):
        assert_close(vector, embedder(text))


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join), min_size=2, max_size=9)
)
@hypothesis_settings(max_examples=25)
def test_deterministic_vectors_are_equal_bit_for_bit(sentence_folder, texts):
    embedder = load(sentence_folder, deterministic=True, long_texts="windows")
    together = embedder(texts)
    for text, vector in zip(texts, together, strict=True):
        assert embedder(text).tobytes() == vector.tobytes()


def test_a_stream_keeps_the_order_across_windows(small_folder, monkeypatch):
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 2)
    embedder, counts = load(small_folder), TextCounts()
    rows = list(embedder.stream(iter(TEXTS), counts=counts))
    windows = embedder.stream_windows(embedder.read(TEXTS))
    assert [len(window.computed) for window in windows] == [2, 2, 1]
    assert (counts.texts, counts.empty, counts.unknown_only) == (5, 1, 1)
    for text, vector in zip(TEXTS, rows, strict=True):
        assert_close(vector, embedder(text))


def test_a_long_text_in_parts_is_their_mean_by_tokens(small_folder):
    words = "the cat saw a dog lost hat the a"
    embedder = load(small_folder, long_texts="windows", max_length=6, stride=3)
    pieces = words.split()
    parts = [pieces[0:4], pieces[3:7], pieces[6:9]]
    alone = load(small_folder, max_length=6)([" ".join(part) for part in parts])
    expected = np.average(alone, axis=0, weights=[4, 4, 3])
    vectors = embedder(["a", words, "a hat"])
    assert_close(vectors[1], expected, "float32")
    assert_close(vectors[2], embedder("a hat"))


def test_a_folder_of_sentences_says_what_is_done(sentence_folder):
    embedder = load(sentence_folder)
    assert embedder.head.description == "mean → dense 5 tanh → normalize"
    assert (embedder.dimension, embedder.similarity) == (5, "cosine")
    assert embedder.prompts == {"query": "seek: "}
    vectors = embedder(TEXTS)
    assert_close(np.linalg.norm(vectors, axis=1), np.ones(len(vectors)), "float32")


@pytest.mark.parametrize(
    ("choices", "description", "dimension"),
    [
        ({"normalize": False}, "mean → dense 5 tanh", 5),
        ({"pooling": ("cls",)}, "cls → normalize", 8),
        ({"pooling": ("cls", "max"), "normalize": False}, "cls + max", 16),
        ({"dimensions": 3}, "mean → dense 5 tanh → normalize → first 3", 3),
        (
            {"dimensions": 3, "normalize": True},
            "mean → dense 5 tanh → normalize → first 3 → normalize",
            3,
        ),
        ({"dimensions": 5, "normalize": True}, "mean → dense 5 tanh → normalize", 5),
    ],
)
def test_choices_change_what_the_folder_says(sentence_folder, choices, description, dimension):
    embedder = load(sentence_folder, **choices)
    assert (embedder.head.description, embedder.dimension) == (description, dimension)
    vectors = embedder(TEXTS)
    assert vectors.shape == (len(TEXTS), dimension)
    if description.endswith("normalize"):
        assert_close(np.linalg.norm(vectors, axis=1), np.ones(len(vectors)), "float32")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"dimensions": 6}, "dimensions is 6, and a vector has only 5"),
        ({"max_length": 25}, "max_length is 25, and this model takes at most 24"),
        ({"prompt_name": "passage"}, "no prompt 'passage'. Available prompts"),
        ({"prompt_name": "query", "prompt": ""}, "exclude each other"),
    ],
)
def test_what_the_model_has_not_is_refused(sentence_folder, choices, message):
    with pytest.raises(SettingsError, match=message):
        load(sentence_folder, **choices)


@pytest.mark.parametrize(
    "choices", [{}, {"normalize": True}, {"dimensions": 3}, {"dimensions": 3, "normalize": False}]
)
def test_a_changed_embedder_is_one_that_was_loaded_so(sentence_folder, choices):
    usual, expected = load(sentence_folder), load(sentence_folder, **choices)
    changed = usual.with_options(**choices)
    assert changed.engine is usual.engine
    assert changed.head.description == expected.head.description
    assert changed.identity == expected.identity
    np.testing.assert_array_equal(changed(TEXTS), expected(TEXTS))
    with pytest.raises(SettingsError, match="dimensions is 6, and a vector has only 5 features"):
        usual.with_options(dimensions=6)


def test_vectors_of_tokens_are_the_last_states(small_folder):
    embed = load(small_folder).with_options(by_token=True)
    encoded = embed.encode_window(list(embed.read(TEXTS)))
    for text, vectors in zip(TEXTS, embed.compute_window(encoded), strict=True):
        assert_close(vectors, states_of(small_folder, text)[-1])


def test_identity_tells_models_and_choices_apart_and_nothing_else(
    small_folder, sentence_folder, tmp_path
):
    save_small(tmp_path / "copy")
    first, copy = load(small_folder).identity, load(tmp_path / "copy").identity
    assert first["model_sha256"] == copy["model_sha256"]
    assert {**copy, "model": first["model"]} == first
    assert load(sentence_folder).identity["model_sha256"] != first["model_sha256"]
    other = load(sentence_folder, prompt_name="query", max_length=9, long_texts="windows")
    changed = {
        key for key, value in other.identity.items() if value != load(sentence_folder).identity[key]
    }
    assert changed == {"prompt", "max_length", "stride"}
