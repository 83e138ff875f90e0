"""Loaded models can be pickled and copied, before they are used and after."""

import copy
import pickle
import re

import numpy as np
import pytest
from tests.closeness import assert_close
from tests.unit.inference.small import build_sentence_model, save_small
from tests.unit.inference.small_task import save_answerer, save_classifier, save_tagger
from torch import nn

from bertkit import Answerer, Classifier, Embedder, FillMask, Tagger
from bertkit.inference.embeddings.pooling import SentenceHead
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.tokenization.tokenizer import Tokenizer

TEXTS = ["the cat saw a hat .", "dog", "a dog lost the cat ."]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_small(folder / "small")
    save_classifier(folder / "classifier")
    save_tagger(folder / "tagger")
    save_answerer(folder / "answerer")
    return folder


def copy_pickled(original):
    return pickle.loads(pickle.dumps(original))


def split_numbers(answer: object) -> tuple[str, list[float]]:
    """An answer in words, and its numbers, which may differ in last bits."""
    return NUMBER.sub("#", repr(answer)), [float(found) for found in NUMBER.findall(repr(answer))]


USES = {
    "embedder": (
        lambda folder, engine: Embedder.load(folder / "small", EmbedderSettings(engine=engine)),
        lambda embedder: [*embedder(TEXTS).tolist(), embedder("a cat").tolist()],
    ),
    "fill_mask": (
        lambda folder, engine: FillMask.load(folder / "small", engine=engine),
        lambda fill: fill(["the [MASK]", "a [MASK] saw the cat ."]),
    ),
    "classifier": (
        lambda folder, engine: Classifier.load(folder / "classifier", engine=engine),
        lambda classify: classify(TEXTS),
    ),
    "tagger": (
        lambda folder, engine: Tagger.load(folder / "tagger", engine=engine),
        lambda tag: tag(TEXTS),
    ),
    "answerer": (
        lambda folder, engine: Answerer.load(folder / "answerer", engine=engine),
        lambda answer: answer(("the cat", "a dog saw the cat .")),
    ),
}


@pytest.mark.parametrize("make_copy", [copy_pickled, copy.deepcopy])
@pytest.mark.parametrize("engine", ["torch", "openvino"])
@pytest.mark.parametrize("name", USES)
def test_a_copy_answers_as_the_original(folder, name, engine, make_copy):
    load, use = USES[name]
    original = load(folder, engine)
    early = make_copy(original)
    words, numbers = split_numbers(use(original))
    assert numbers
    for copied in (early, make_copy(original)):
        found_words, found_numbers = split_numbers(use(copied))
        assert found_words == words
        # the weights lie elsewhere in memory, where MKL may add up in another order
        assert_close(found_numbers, numbers)


def test_a_head_with_all_steps_can_be_copied():
    settings = EmbedderSettings(dimensions=3, normalize=True)
    model = build_sentence_model(nn.Linear(8, 6))
    head = SentenceHead.build(model, settings, 8)
    assert len(head.steps) == 4
    vectors = np.random.default_rng(0).random((2, 8), np.float32)
    assert np.array_equal(copy_pickled(head).finish(vectors), head.finish(vectors))


def test_a_tokenizer_can_be_copied(folder):
    tokenizer = Tokenizer.load(folder / "small")
    copied = copy_pickled(tokenizer)
    assert copied.fingerprint == tokenizer.fingerprint
    assert copied.encode("the cats") == tokenizer.encode("the cats")
