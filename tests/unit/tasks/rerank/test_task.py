"""The task as the recipe and the predictor use it, from texts to a saved model."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.closeness import close
from tests.unit.tasks.small import TOKENIZER, learn

from bertkit.base.errors import CheckpointError, InputError
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.examples import RerankExample
from bertkit.tasks.rerank.loss import listwise_loss
from bertkit.tasks.rerank.task import Ranking, Rerank
from bertkit.tasks.task_batch import TaskBatch

SETTINGS = RerankSettings(max_length=16)
ANIMALS = ("the cat saw", "a dog lost", "the fox", "not a hat")
EXAMPLES = [
    RerankExample(animal, ANIMALS, tuple(float(animal in text) for text in ANIMALS))
    for animal in ("cat", "dog", "fox", "hat")
]


def test_it_learns_to_order_passages(tmp_path):
    task = Rerank.from_examples(SETTINGS, EXAMPLES)
    predictor, evaluation = learn(task, EXAMPLES, tmp_path, num_steps=300)
    assert evaluation.metrics == {"ndcg@10": 1.0, "mrr@10": 1.0, "recall@10": 1.0}
    found = predictor(("dog", list(ANIMALS)))
    assert int(np.argmax(found.values)) == 1
    assert predictor([("dog", "the fox")])[0].values == (close(found.values[2], "float32"),)


def test_each_pair_is_a_sequence_and_cuts_are_counted():
    examples = [EXAMPLES[0], RerankExample("cat", ("the " * 30,))]
    first, second = Rerank(SETTINGS).encode(examples, TOKENIZER)
    assert first.sequences[0].segments == [0, 0, 0, 1, 1, 1, 1]
    assert first.labels.tolist() == [1, 0, 0, 0]
    assert (first.is_cut, second.is_cut, second.labels) == (False, True, None)
    assert len(second.sequences[0].ids) == 16


def test_the_loss_of_a_list_is_a_softmax_over_its_passages():
    logits = torch.tensor([2.0, 1.0, -1.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
    relevances = torch.tensor([1.0, 0.0, 3.0, 0.0, 1.0])
    found = listwise_loss(logits, relevances, [3, 2])
    first, second = logits[:3].log_softmax(0), logits[3:].log_softmax(0)
    assert found[0].item() == close((-first[0] / 4 - 3 * first[2] / 4).item())
    assert found[1].item() == close(-second[1].item())
    found.sum().backward()
    assert logits.grad[:3].sum().item() == close(0.0)


@pytest.mark.parametrize("relevance", [0.0, 0.25, 1.0, 3.0])
def test_passages_that_are_equally_relevant_are_learned_one_by_one(relevance):
    logits = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
    found = listwise_loss(logits, torch.full((3,), relevance), [2, 1])
    truth = torch.full((3,), min(1.0, relevance), dtype=torch.float64)
    each = torch.nn.functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    assert found.tolist() == close([float(each[:2].mean()), float(each[2])])


def test_a_query_counts_once_whatever_its_number_of_passages():
    task = Rerank(SETTINGS)
    batch = TaskBatch.collate(task.encode(EXAMPLES, TOKENIZER), range(4))
    assert batch.target_counts == {"task": 4}
    logits = torch.zeros(16, 1)
    assert float(task.loss(logits, batch).losses["task"]) == close(4 * np.log(4), "float32")


def test_a_model_that_says_the_same_of_all_gains_nothing_from_their_order():
    values = [Ranking((0.0,) * 4)] * 4
    found = Rerank(SETTINGS).score(EXAMPLES, values).metrics["mrr@10"]
    assert found == close(np.mean([1 / rank for rank in (1, 2, 3, 4)]))


def test_queries_without_a_choice_are_left_out_of_metrics():
    task, alike = Rerank(SETTINGS), RerankExample("q", ("a", "b"), (1.0, 1.0))
    best = [Ranking(one.relevances) for one in EXAMPLES]
    found = task.score([*EXAMPLES, alike], [*best, Ranking((0.0, 0.0))])
    assert len(found.predictions) == 4
    assert found.metrics["ndcg@10"] == 1.0
    metrics = task.score([alike], [Ranking((0.0, 1.0))]).metrics
    assert all(map(np.isnan, metrics.values()))
    lines = task.list_warnings([*EXAMPLES, alike])
    assert lines[0] == "5 queries, 18 passages, 6 of them relevant"
    assert lines[1].startswith("1 of the queries have no passage that is more relevant")


def test_the_order_of_the_search_is_that_before_training():
    example = replace(EXAMPLES[0], cosines=(0.1, 0.5, 0.3, 0.2))
    [found] = Rerank(SETTINGS).score([example], [Ranking(example.relevances)]).predictions
    assert found.start_ndcg == close(1 / np.log2(5))
    assert found.rank == 1


def test_passages_of_which_none_is_relevant_teach_nothing():
    with pytest.raises(InputError, match="no passage has a relevance over 0"):
        Rerank.from_examples(SETTINGS, [RerankExample("q", ("a", "b"), (0.0, 0.0))])


def test_a_model_with_two_outputs_is_refused():
    config = BertConfig.from_dict({"model_type": "bert", "num_labels": 2}, "the test")
    with pytest.raises(CheckpointError, match="a reranker has 1 label, the value, not 2"):
        Rerank.from_config(SETTINGS, config, {})
