"""Labels that no model has learned, as transformers and sentence-transformers choose among them."""

import pytest
from tests.closeness import close
from tests.unit.inference.small import build_sentence_model, save_small
from tests.unit.inference.small_task import save_model

import bertkit
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify

TEXTS = ["the cat saw a hat", "a dog", "lost ."]
LABELS = ["cat", "dog", "lost hat"]
PLAIN = {"device": "cpu", "precision": "fp32", "engine": "torch"}


def test_entailment_is_that_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    names = ("contradiction", "neutral", "entailment")
    folder = save_model(tmp_path / "judge", Classify(ClassifySettings(max_length=24), names))
    template = "the {} ."
    judge = transformers.pipeline("zero-shot-classification", model=folder, device="cpu")
    theirs = judge(TEXTS, LABELS, hypothesis_template=template)
    ours = bertkit.classify(TEXTS, labels=LABELS, template="the {label} .", model=folder, **PLAIN)
    for one, other in zip(ours, theirs, strict=True):
        assert one.label == other["labels"][0]
        shares = dict(zip(other["labels"], other["scores"], strict=True))
        assert close([*one.probabilities.values()], [shares[label] for label in LABELS])


def test_cosines_are_those_of_sentence_transformers(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    folder = tmp_path / "encoder"
    save_small(folder)
    write_sentence_model(folder, build_sentence_model(torch.nn.Linear(8, 5)))
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    theirs = 20 * model.similarity(model.encode(TEXTS), model.encode(LABELS))
    ours = bertkit.classify(TEXTS, labels=LABELS, template="{label}", model=folder, **PLAIN)
    assert close([one.logits for one in ours], theirs)
