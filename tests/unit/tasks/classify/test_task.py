"""The task as the recipe and the predictor use it, from texts to a saved model."""

import json

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.tasks.small import TOKENIZER, decode, learn

from bertkit.base.errors import CheckpointError, InputError
from bertkit.models.bert.config import BertConfig
from bertkit.reports.text import format_percent
from bertkit.tasks.batch import Encoded
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.decoding import find_many_probabilities, find_probabilities
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.saved import load_task
from bertkit.tasks.task_batch import TaskBatch
from bertkit.tasks.texts import Texts

ONE = ClassifySettings(max_length=12)
MANY = ClassifySettings(max_length=12, multi_label=True, threshold="best")
FILLERS = ("the", "a hat", "saw the", "lost a hat", "the the hat")


def list_examples(*, several: bool) -> list[ClassifyExample]:
    """Texts whose labels are the animals in them: one, or none to all three."""
    found = []
    for number in range(32):
        animals = ["cat", "dog", "fox"]
        chosen = [name for bit, name in enumerate(animals) if number >> bit & 1]
        if not several:
            chosen = [animals[number % 3]]
        text = " ".join((FILLERS[number % 5], *chosen, FILLERS[number // 5 % 5]))
        found.append(ClassifyExample(Texts(text), tuple(chosen), f"line {number}"))
    return found


@pytest.mark.parametrize("settings", [ONE, MANY], ids=["one", "several"])
def test_it_learns_animals_and_is_saved(settings, tmp_path):
    examples = list_examples(several=settings.multi_label)
    task = Classify.from_examples(settings, examples)
    assert task.labels == ("cat", "dog", "fox")
    classify, evaluation = learn(task, examples, tmp_path, num_steps=100)
    assert evaluation.metrics[task.metric] == 1.0
    assert evaluation.mistakes == ()
    assert classify.task.numbers.keys() == ({"threshold"} if settings.multi_label else set())
    with pytest.raises(InputError, match="input 1: the model reads single texts, and this is a"):
        classify([("a fox", "saw the hat")])
    found = classify(["the cat", "a fox saw the hat"])
    assert [each.labels for each in found] == [("cat",), ("fox",)]
    shown = json.loads(json.dumps(found[0].to_json()))
    if settings.multi_label:
        assert shown.keys() == {"labels", "probabilities"}
        assert found[0].describe().startswith("cat 9")
        assert classify("the hat").describe() == "(no label)"
    else:
        assert shown.keys() == {"label", "probability", "probabilities"}
        assert found[0].describe() == f"cat\t{format_percent(found[0].probability)}"
        assert sum(shown["probabilities"].values()) == close(1.0, "float32")


def test_a_temperature_changes_probabilities_and_no_label():
    examples = list_examples(several=False)
    task = Classify.from_examples(ONE, examples)
    encoded = task.encode(examples, TOKENIZER)
    random = np.random.default_rng(0)
    logits = [
        random.normal(size=(1, 3)).astype(np.float32) + 2 * (one.labels == [0, 1, 2])
        for one in encoded
    ]
    fitted = task.fit_numbers(examples, encoded, logits)
    before = decode(task, examples, encoded, logits)
    after = decode(fitted, examples, encoded, logits)
    assert fitted.numbers.keys() == {"temperature"}
    assert [each.label for each in before] == [each.label for each in after]
    assert before[0].probability != after[0].probability


def test_a_threshold_that_was_found_takes_the_place_of_that_of_the_settings():
    settings = ClassifySettings(multi_label=True, threshold=0.9)
    example = ClassifyExample(Texts("the cat"))
    for numbers, given in (
        ({}, ()),
        ({"threshold": 0.7}, ("x",)),
        ({"threshold": 0.2}, ("x", "y")),
    ):
        task = Classify(settings, ("x", "y"), numbers)
        found = task.decode(example, Encoded(()), np.array([[1.0, -1.0]], dtype=np.float32))
        assert found.labels == given


@pytest.mark.parametrize("settings", [ONE, MANY], ids=["one", "several"])
def test_of_very_many_labels_an_evaluation_keeps_the_likeliest(settings):
    labels = tuple(f"label {number}" for number in range(50_000))
    task = Classify(settings, labels, {"temperature": 2.0, "threshold": 0.9})
    scores = np.random.default_rng(0).normal(size=(1, 50_000)).astype(np.float32)
    scores[0, [7, 40_000]] = 30.0, 20.0
    example = ClassifyExample(Texts("the cat"))
    whole = task.decode(example, Encoded(()), scores)
    brief = task.for_evaluation(1).decode(example, Encoded(()), scores)
    assert whole.label == brief.label == "label 7"
    assert whole.labels == brief.labels
    assert (whole.probability, len(whole.probabilities)) == (brief.probability, 50_000)
    assert 100 <= len(brief.probabilities) <= 101
    assert brief.probabilities.items() <= whole.probabilities.items()
    few = Classify(settings, labels[:3])
    assert len(few.for_evaluation(1).decode(example, Encoded(()), scores[:, :3]).probabilities) == 3


def test_many_given_labels_have_no_probabilities_each():
    task = Classify(MANY, tuple(map(str, range(50_000))))
    scores = np.full((1, 50_000), 0.1, dtype=np.float32)
    found = task.for_evaluation(1).decode(ClassifyExample(Texts("a")), Encoded(()), scores)
    assert found.labels == task.labels
    assert len(found.probabilities) <= 101


def test_numpy_and_plain_numbers_give_the_same_probabilities():
    scores = np.array([1.5, -2.0, 0.25], dtype=np.float32)
    for multi_label in (False, True):
        plain = find_probabilities(scores.tolist(), 1.7, multi_label=multi_label)
        many = find_many_probabilities(scores, 1.7, multi_label=multi_label)
        assert many.tolist() == close(plain)


def test_equal_scores_give_the_first_label_whatever_is_kept():
    task, scores = Classify(ONE, tuple(map(str, range(3000)))), np.zeros((1, 3000), np.float32)
    found = task.for_evaluation(1).decode(ClassifyExample(Texts("a")), Encoded(()), scores)
    assert found.label == "0"


def test_several_of_very_many_labels_are_evaluated_on_as_many_texts_as_fit():
    labels = tuple(map(str, range(50_000)))
    Classify(ONE, labels).for_evaluation(10_000_000)
    task = Classify(MANY, labels)
    task.for_evaluation(2684)
    with pytest.raises(InputError, match="50,000 labels are evaluated on at most 2,684 texts, and"):
        task.for_evaluation(2685)


def test_a_label_is_shown_in_a_line_and_told_to_programs_as_it_is():
    task = Classify(ONE, ("a\nb\u202e", "c"))
    example = ClassifyExample(Texts("the cat"))
    found = task.decode(example, Encoded(()), np.array([[1.0, -1.0]], dtype=np.float32))
    assert found.describe() == f"a b�\t{format_percent(found.probability)}"
    assert found.to_json()["label"] == "a\nb\u202e"


def test_labels_as_the_loss_reads_them():
    examples = [
        ClassifyExample(Texts("a"), ("y",)),
        ClassifyExample(Texts("a"), ("new",)),
        ClassifyExample(Texts("a")),
    ]
    rows = Classify(ONE, ("x", "y")).encode(examples, TOKENIZER)
    assert [one.labels.tolist() for one in rows[:2]] == [[1], [-100]]
    assert rows[2].labels is None
    examples = [ClassifyExample(Texts("a"), ("y", "new")), ClassifyExample(Texts("a"), ())]
    rows = Classify(MANY, ("x", "y")).encode(examples, TOKENIZER)
    assert [one.label_rows.tolist() for one in rows] == [[[0.0, 1.0]], [[0.0, 0.0]]]
    assert TaskBatch.collate(rows, [0, 1]).target_counts == {"task": 2}


def test_windows_of_a_text_have_one_loss_and_one_answer():
    settings = ClassifySettings(max_length=8, long_texts="windows")
    task = Classify(settings, ("x", "y"))
    examples = [ClassifyExample(Texts("the cat " * 9), ("y",)), ClassifyExample(Texts("a"), ("x",))]
    encoded = task.encode(examples, TOKENIZER)
    batch = TaskBatch.collate(encoded, [0, 1])
    num_windows = len(encoded[0].sequences)
    assert num_windows > 3
    logits = torch.randn(num_windows + 1, 2, generator=torch.Generator().manual_seed(0))
    scores = task.loss(logits, batch)
    means = torch.stack([logits[:-1].mean(dim=0), logits[-1]])
    expected = torch.nn.functional.cross_entropy(means, torch.tensor([1, 0]), reduction="sum")
    assert_close(scores.losses["task"], expected)
    found = task.decode(examples[0], encoded[0], logits[:-1].numpy())
    assert found.probabilities["y"] == close(float(means.softmax(dim=1)[0, 1]), "float32")


def test_a_model_of_another_tool_says_how_many_labels_a_text_has(tmp_path):
    config = BertConfig.from_dict(
        {"model_type": "bert", "num_labels": 3, "problem_type": "multi_label_classification"},
        tmp_path,
    )
    task = load_task(tmp_path, config, "BertForSequenceClassification")
    assert task.settings.multi_label
    assert task.metric == "micro_f1"
    assert task.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_a_regression_is_no_classifier(tmp_path):
    config = BertConfig.from_dict({"model_type": "bert", "num_labels": 1}, tmp_path)
    with pytest.raises(CheckpointError, match="at least two labels"):
        Classify.from_config(ONE, config, {})


def test_labels_that_were_renamed_without_the_positive_one_are_refused(tmp_path):
    names = {"model_type": "bert", "id2label": {"0": "bad", "1": "good"}}
    config = BertConfig.from_dict(names, tmp_path)
    assert (
        Classify.from_config(ClassifySettings(positive_label="bad"), config, {}).positive == "bad"
    )
    with pytest.raises(CheckpointError, match=r"positive_label 'p' of task\.json isn't among"):
        Classify.from_config(ClassifySettings(positive_label="p"), config, {})


def test_labels_of_a_folder_are_spelled_as_those_of_tables():
    for before, after in ((("0.0", "1.0"), ("0", "1")), (("1", "1.0"), ("1", "1.0"))):
        config = BertConfig(id2label=dict(enumerate(before)))
        assert Classify.from_config(ONE, config, {}).labels == after


def test_the_likeliest_of_several_labels_are_shown_whether_given_or_not():
    task = Classify(MANY, ("a", "b", "c"), top_k=2)
    found = decode(task, [None], [None], [np.array([[-1.0, -3.0, 2.0]])])[0]
    assert found.labels == ("c",)
    assert list(found.probabilities) == ["c", "a"]
    assert found.describe() == "c 88.1 %, a 26.9 %"
    assert found.to_row()["probabilities"] == found.probabilities


@pytest.mark.parametrize("num_labels", [4, 1500])
def test_labels_are_ordered_by_their_logits_where_all_probabilities_are_one(num_labels):
    scores = np.linspace(40.0, 90.0, num_labels, dtype=np.float32)[None]
    task = Classify(MANY, tuple(map(str, range(num_labels))), top_k=3)
    found = task.decode(ClassifyExample(Texts("a")), Encoded(()), scores)
    best = [str(num_labels - number) for number in (1, 2, 3)]
    assert found.label == best[0]
    assert list(found.probabilities.items()) == [(label, 1.0) for label in best]
    assert [row["label"] for row in found.as_rows()] == best
    kept = task.for_evaluation(1).decode(ClassifyExample(Texts("a")), Encoded(()), scores)
    assert list(kept.probabilities) == best
