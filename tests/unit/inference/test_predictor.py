"""Answers of fine-tuned models: one or many, in order, counted, and refused in plain words."""

import shutil

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small_task import LABELS, save_classifier

from bertkit.base.errors import (
    BertkitError,
    CheckpointError,
    InputError,
    MissingFileError,
    NonFiniteError,
)
from bertkit.base.json_files import read_json, write_json
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.inference import stream
from bertkit.inference.predictor import Classifier, PredictionCounts, Predictor
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.tasks.classify.task import Classify

TEXTS = ["the cat", "a dog saw the hat .", "", "hat", "a cat lost a dog - the hat", "dogs"] * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_classifier(tmp_path_factory.mktemp("models") / "labels")


@pytest.fixture(scope="module")
def classify(folder):
    return Classifier.load(folder)


def make_examples(classify, values):
    return [classify.task.make_example(value, "here") for value in values]


def expected_probabilities(folder, text, pair=None):
    """What the padded model says of one text."""
    classify = Classifier.load(folder, engine="torch")
    encoding = classify.loaded.tokenizer.encode(text, pair, max_length=16)
    model = BertForSequenceClassification.from_pretrained(folder)
    ids, types = torch.tensor([encoding.ids]), torch.tensor([encoding.token_type_ids])
    with torch.inference_mode():
        return model(ids, types).softmax(dim=-1)[0].numpy()


@pytest.mark.parametrize("value", ["a cat saw the dog", ("a cat", "the dog")])
@pytest.mark.parametrize("engine", ["torch", "openvino"])
def test_an_answer_is_what_the_model_says(folder, value, engine):
    found = Classifier.load(folder, engine=engine, precision="fp32")(value)
    words = (value,) if isinstance(value, str) else value
    probabilities = expected_probabilities(folder, *words)
    assert_close(list(found.probabilities.values()), probabilities)
    assert list(found.probabilities) == list(LABELS)
    assert found.label == LABELS[probabilities.argmax()]
    assert found.probability == max(found.probabilities.values())


def test_one_input_has_one_answer_and_many_have_a_list(classify):
    one = classify(TEXTS[1])
    many = classify(TEXTS)
    assert isinstance(many, list)
    assert len(many) == len(TEXTS)
    for text, answer in zip(TEXTS, many, strict=True):
        alone = classify(text)
        assert (alone.label, alone.probability) == (
            answer.label,
            close(answer.probability, "float32"),
        )
    assert one.label == many[1].label
    assert classify([]) == []
    assert classify([("a cat", "a dog")])[0].label == classify(("a cat", "a dog")).label
    assert [each.label for each in classify(np.array(TEXTS[:2]))] == [
        each.label for each in many[:2]
    ]


def test_odd_inputs_are_counted(folder, monkeypatch):
    classify = Classifier.load(folder)
    monkeypatch.setattr(stream, "WINDOW_TEXTS", 2)
    texts = ["the cat", " ", "", "cat " * 30]
    counts = PredictionCounts()
    examples = make_examples(classify, [*texts, ("", ""), ("", "a")])
    answers = list(classify.stream_examples(examples, counts))
    assert [example for example, _ in answers] == examples
    assert (counts.inputs, counts.empty) == (6, 3)
    assert counts.tokens == 4 + 2 + 2 + 16 + 3 + 4


def test_windows_and_choices_are_told_apart(classify, monkeypatch):
    def encode_twice(self, examples, tokenizer):
        return [
            type(one)(one.sequences * 2, is_cut=True) for one in whole(self, examples, tokenizer)
        ]

    whole = Classify.encode
    monkeypatch.setattr(Classify, "encode", encode_twice)
    examples = make_examples(classify, ["a cat", ""])
    for has_windows, expected in ((True, 2), (False, 0)):
        monkeypatch.setattr(Classify, "has_windows", has_windows)
        counts = PredictionCounts()
        list(classify.stream_examples(examples, counts))
        assert (counts.windowed, counts.truncated, counts.empty) == (expected, 2, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "the input: expected a text"),
        (None, "the input: expected a text"),
        (b"a cat", "the input: expected a text or a tuple of two, got b'a cat'"),
        (("a", "b", "c"), "the input: expected a text"),
        ({"text": "a"}, "the input: expected a text"),
        (["a", 3], "input 2: expected a text"),
    ],
)
def test_what_is_no_input_is_refused(classify, value, message):
    with pytest.raises(InputError, match=message):
        classify(value)
    with pytest.raises(InputError, match="expected a list of inputs, got one input"):
        classify.stream(("a", "b"))


def test_a_model_of_single_texts_refuses_pairs(tmp_path):
    classify = Classifier.load(save_classifier(tmp_path / "single", type_vocab_size=1))
    assert classify("a cat").label in LABELS
    for pairs in (("a", "b"), [("a", "b")]):
        with pytest.raises(InputError, match=r"takes single texts \(type_vocab_size is 1\)"):
            classify(pairs)


def test_scores_that_are_not_finite_are_refused(folder):
    classify = Classifier.load(folder, engine="torch")
    with torch.no_grad():
        classify.engine.model.classifier.bias[1] = float("nan")
    with pytest.raises(
        NonFiniteError, match="aren't finite; check the model with `bertkit inspect`"
    ):
        classify("a cat")


def test_a_length_beyond_the_model_is_refused(tmp_path):
    folder = save_classifier(tmp_path / "long", max_length=25)
    with pytest.raises(
        CheckpointError, match="the task's max_length is 25, and the model takes at"
    ):
        Predictor.load(folder)


def test_a_model_of_another_task_is_refused(folder, monkeypatch):
    class Elsewhere(Classify):
        name = "elsewhere"

    class Other(Predictor):
        task_kind = Elsewhere

    with pytest.raises(CheckpointError, match="for the task classify, not elsewhere; load it with"):
        Other.load(folder)
    assert isinstance(Predictor.load(folder).task, Classify)


def test_a_folder_of_another_tool_works_by_its_architecture(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns(TASK_FILE))
    found = Classifier.load(copy)("a cat saw the dog")
    assert found.probabilities == close(
        Classifier.load(folder)("a cat saw the dog").probabilities, "float32"
    )
    long = "a cat saw the dog . " * 6
    ids = Classifier.load(copy).loaded.tokenizer.encode(long, max_length=24).ids
    (window,) = Classifier.load(copy).stream_windows(make_examples(Classifier.load(copy), [long]))
    assert window.encoded.encoded[0].sequences[0].ids == ids  # as long as the model takes


@pytest.mark.parametrize(
    "damage", [lambda text: "{", lambda text: text[:-9], lambda text: '{"task": "classify"}']
)
def test_a_damaged_task_file_is_refused(folder, tmp_path, damage):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / TASK_FILE).write_text(damage((copy / TASK_FILE).read_text()))
    with pytest.raises(BertkitError, match=r"task\.json"):
        Predictor.load(copy)


def test_what_is_no_fine_tuned_model_is_refused(folder, tmp_path):
    with pytest.raises(CheckpointError, match="isn't a fine-tuned model"):
        Predictor.load(f"{folder}-whole")
    with pytest.raises(MissingFileError):
        Predictor.load(tmp_path / "none")


def test_the_config_is_believed_about_labels(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    config = read_json(copy / "config.json")
    config["id2label"] = {"0": "x", "1": "y", "2": "z"}
    config["label2id"] = {"x": 0, "y": 1, "z": 2}
    write_json(copy / "config.json", config)
    names = dict(zip("xyz", LABELS, strict=True))
    assert names[Classifier.load(copy)("a cat").label] == Classifier.load(folder)("a cat").label
