"""Scores of labels and documents: their order, and where they have a sigmoid."""

import json

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small_task import save_model
from tests.unit.serving.running import running

from bertkit.inference.predictor import Predictor
from bertkit.inference.reranker import Reranker
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.task import Rerank


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """A server of models whose logits are so large that their sigmoids are all 1."""
    folder, paths = tmp_path_factory.mktemp("far"), {}
    number = Regress(RegressSettings(max_length=16))
    several = Classify(ClassifySettings(max_length=16, multi_label=True), ("bad", "good", "odd"))
    order = Rerank(RerankSettings(max_length=16))
    tasks = {"number": number, "cross": number, "labels": several, "order": order}
    for name, task in tasks.items():
        paths[name] = save_model(folder / name, task)
        model = BertForSequenceClassification.from_pretrained(folder / name)
        with torch.no_grad():
            model.classifier.bias += 60 + torch.arange(len(model.classifier.bias))
        model.save_pretrained(folder / name)
    (folder / "cross" / "task.json").unlink()  # as another tool's reranker is
    config = json.loads((folder / "cross" / "config.json").read_text())
    del config["problem_type"]
    (folder / "cross" / "config.json").write_text(json.dumps(config))
    with running(paths) as client:
        yield client, paths


def test_order_is_that_of_the_value_where_all_scores_are_one(far):
    client, paths = far
    score = Predictor.load(paths["number"], device="cpu")
    texts = ["a dog", "the cat saw a hat", "lost", "the hat", "a cat lost the dog"]
    values = [score(("the cat", one)).value for one in texts]
    assert min(values) > 40
    order = sorted(range(5), key=lambda index: -values[index])
    assert order != list(range(5))
    ranked = client.post("/rerank", {"query": "the cat", "texts": texts}).json
    assert ranked == [{"index": index, "score": 1.0} for index in order]
    asked = {"query": "the cat", "documents": texts}
    found = client.post("/v2/rerank", asked).json["results"]
    assert [one["index"] for one in found] == order
    best = client.post("/v1/models/labels/predict", {"inputs": "the cat"}).json
    assert {one["score"] for one in best} == {1.0}
    raw = client.post("/v1/models/labels/predict", {"inputs": "the cat", "raw_scores": True}).json
    assert [one["label"] for one in best] == [one["label"] for one in raw]
    assert [one["score"] for one in raw] == sorted((one["score"] for one in raw), reverse=True)
    asked = {"inputs": "the cat", "options": {"top_k": 2}}
    kept = client.post("/v1/models/labels/classify", asked).json["results"]
    assert list(kept["probabilities"]) == [one["label"] for one in best[:2]]


def test_a_reranker_answers_the_routes_of_rerankers(far):
    client, paths = far
    texts = ["a dog", "the cat saw a hat", "lost"]
    best = Reranker.load(paths["order"], device="cpu").rank("the cat", texts)
    assert client.get("/v1/models/order").json["tasks"] == ["rerank"]
    assert [*client.get("/v1/models/order/info").json["model_type"]] == ["reranker"]
    asked = {"query": "the cat", "texts": texts, "raw_scores": True}
    ranked = client.post("/v1/models/order", asked).json
    assert [one["index"] for one in ranked] == [one.row for one in best]
    assert [one["score"] for one in ranked] == close([one.score for one in best], "float32")
    asked = {"model": "order", "query": "the cat", "documents": texts}
    found = client.post("/v1/rerank", asked).json["results"]
    assert [one["index"] for one in found] == [one.row for one in best]
    pairs = {"inputs": [["the cat", text] for text in texts], "raw_scores": True}
    scored = client.post("/v1/models/order/predict", pairs).json
    values = {one.row: one.score for one in best}
    assert [one[0]["score"] for one in scored] == close(
        [values[row] for row in range(3)], "float32"
    )


def test_a_number_of_a_regression_has_no_sigmoid_where_transformers_has_none(far):
    client, paths = far
    value = Predictor.load(paths["number"], device="cpu")("a dog").value
    body = {"inputs": "a dog", "parameters": {}}
    ((found,),) = client.post("/v1/models/number", body).json
    assert found["score"] == close(value, "float32")
    ((found,),) = client.post("/v1/models/cross", body).json
    assert found["score"] == 1.0
    for function, expected in (("sigmoid", 1.0), ("none", value)):
        asked = {"inputs": "a dog", "parameters": {"function_to_apply": function}}
        for name in ("number", "cross"):
            ((found,),) = client.post(f"/v1/models/{name}", asked).json
            assert found["score"] == close(expected, "float32")
