"""A model of pairs orders passages by its value of each."""

import json
from pathlib import Path

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small_task import save_model

import bertkit
from bertkit.base.errors import CheckpointError, InputError, MissingFileError, SettingsError
from bertkit.inference.predictor import PredictionCounts, Predictor
from bertkit.inference.reranker import Reranker
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.task import Rerank

TEXTS = ["a dog", "the cat saw a hat", "lost", "the hat", "a cat lost the dog", "lost"]
TASKS = {
    "rerank": Rerank(RerankSettings(max_length=16)),
    "regress": Regress(RegressSettings(max_length=16)),
    "classify": Classify(ClassifySettings(max_length=16), ("no", "yes")),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rerankers")
    return {name: save_model(folder / name, task) for name, task in TASKS.items()}


def load(folder):
    return Reranker.load(folder, device="cpu", engine="torch")


def find_values(folder, name):
    """The value of each text by its predictor."""
    found = Predictor.load(folder, device="cpu", engine="torch")([("the cat", t) for t in TEXTS])
    if name == "rerank":
        return [one.values[0] for one in found]
    if name == "regress":
        return [one.value for one in found]
    return [float(one.logits[1] - one.logits[0]) for one in found]


@pytest.mark.parametrize("name", TASKS)
def test_texts_are_in_the_order_of_their_values(folders, name):
    values = find_values(folders[name], name)
    found = load(folders[name]).rank("the cat", TEXTS)
    order = sorted(range(len(TEXTS)), key=lambda row: -values[row])  # equal ones as given
    assert [one.row for one in found] == order
    assert [one.text for one in found] == [TEXTS[row] for row in order]
    assert [one.score for one in found] == close([values[row] for row in order], "float32")


def test_the_best_are_the_first_of_all_and_counts_are_of_all(folders):
    reranker, counts = load(folders["rerank"]), PredictionCounts()
    best = reranker.rank("the cat", iter(TEXTS), 3, counts)
    assert best == reranker.rank("the cat", TEXTS)[:3]
    assert (counts.inputs, counts.truncated) == (6, 0)
    assert reranker.rank("the cat", []) == []


def test_values_that_a_sigmoid_rounds_to_one_still_give_an_order(folders, tmp_path):
    folder = save_model(tmp_path / "far", TASKS["rerank"])
    model = BertForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        model.classifier.bias += 60
    model.save_pretrained(folder)
    found = load(folder).rank("the cat", TEXTS[:5])
    assert (
        len({torch.tensor(one.score, dtype=torch.float64).sigmoid().item() for one in found}) == 1
    )
    assert len({one.score for one in found}) == 5
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_a_cross_encoder_of_another_tool_is_taken(folders, tmp_path):
    folder = save_model(tmp_path / "cross", TASKS["rerank"])
    (Path(folder) / "task.json").unlink()
    config = json.loads((Path(folder) / "config.json").read_text())
    assert "problem_type" not in config
    found, before = load(folder), load(folders["rerank"])
    assert found.task.name == "regress"  # with one output
    assert found.rank("the cat", TEXTS)[0].row == before.rank("the cat", TEXTS)[0].row


def test_models_of_other_tasks_and_of_single_texts_are_refused(tmp_path):
    three = Classify(ClassifySettings(max_length=16), ("a", "b", "c"))
    with pytest.raises(CheckpointError, match="classify with 3 labels, and reranking takes one"):
        load(save_model(tmp_path / "three", three))
    single = Regress(RegressSettings(max_length=16, pairs=False))
    with pytest.raises(InputError, match="reads single texts, and reranking takes a model of pair"):
        load(save_model(tmp_path / "single", single))
    one_segment = save_model(tmp_path / "segment", TASKS["regress"], type_vocab_size=1)
    with pytest.raises(InputError, match="single texts"):
        load(one_segment)
    with pytest.raises(MissingFileError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_query_is_refused(folders, query):
    with pytest.raises(InputError, match="the query is empty"):
        load(folders["rerank"]).rank(query, TEXTS)


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        (("entailment", "not_entailment"), 0),
        (("LABEL_0", "LABEL_1"), 1),
        (("0", "1"), 1),
        (("equivalent", "Not equivalent"), 0),
        (("irrelevant", "relevant"), 1),
    ],
)
def test_of_two_labels_the_one_that_says_yes_orders(tmp_path, labels, place):
    folder = save_model(tmp_path / "pairs", Classify(ClassifySettings(max_length=16), labels))
    found = Predictor.load(folder, device="cpu", engine="torch")([("the cat", t) for t in TEXTS])
    values = [float(one.logits[place] - one.logits[1 - place]) for one in found]
    ranked = load(folder).rank("the cat", TEXTS)
    assert [one.score for one in ranked] == close(sorted(values, reverse=True), "float32")


def test_two_labels_that_say_nothing_are_refused(tmp_path):
    task = Classify(ClassifySettings(max_length=16), ("cat", "dog"))
    folder = save_model(tmp_path / "pairs", task)
    with pytest.raises(CheckpointError, match="has the labels 'cat' and 'dog', and which of them"):
        load(folder)


@pytest.mark.parametrize("top_k", [0, -3, 2.5, "3", True])
def test_only_whole_numbers_of_results_are_taken(folders, top_k):
    with pytest.raises(SettingsError, match="top_k must be a whole number of at least 1, got"):
        load(folders["rerank"]).rank("the cat", TEXTS, top_k)
    with pytest.raises(SettingsError, match="top_k must be"):  # before a model is loaded
        bertkit.rerank("the cat", TEXTS, model="nothing", top_k=top_k)
