"""Left to right: each token of the text is in one example, and predicted from those before it."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from torch.utils.flop_counter import FlopCounterMode

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.decoders.causal_objective import CausalObjective
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.tokenization.encoding import Template

CLS, SEP = 2, 3
SENTENCES = [[4, 3, 6], [30], [1, 1, 1, 1, 1, 1, 9]]  # lengths, by document
CONFIG = BertConfig(
    vocab_size=70,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=40,
    is_decoder=True,
)


@dataclass(frozen=True)
class FakeShard:
    content: np.ndarray
    sentence_offsets: np.ndarray
    document_offsets: np.ndarray

    def tokens(self, start: int, stop: int) -> np.ndarray:
        return self.content[start:stop]


def build_shard() -> FakeShard:
    lengths = [length for document in SENTENCES for length in document]
    ends = np.cumsum([0, *lengths])
    documents = np.cumsum([0, *map(len, SENTENCES)])
    return FakeShard(np.arange(5, 5 + ends[-1]), ends, documents)


def build_objective(seed: int = 0, short_rate: float = 0.0) -> CausalObjective:
    return CausalObjective(
        shards=[build_shard()] * 2,
        seed=seed,
        max_length=12,
        short_rate=short_rate,
        template=Template.of_bert(CLS, SEP),
    )


def plan_all(objective: CausalObjective, epoch: int = 0) -> list[PlannedExample]:
    rows = objective.plan(epoch, 0)
    return [PlannedExample(ExampleKey(epoch, 0, index), row) for index, row in enumerate(rows)]


def test_an_example_is_as_many_sentences_as_fit_and_a_long_one_is_cut():
    rows = build_objective().plan(0, 0).tolist()
    assert rows[:2] == [[0, 7, 0], [7, 13, 0]]  # 4 + 3, and 6: ten tokens have room
    assert rows[2:5] == [[13, 23, 1], [23, 33, 1], [33, 43, 0]]
    assert rows[5:] == [[43, 49, 0], [49, 58, 0]]


@pytest.mark.parametrize("short_rate", [0.0, 0.5, 1.0])
def test_each_token_is_in_one_example_of_an_epoch_and_documents_stay_apart(short_rate):
    rows = build_objective(short_rate=short_rate).plan(3, 0)
    assert rows[0, 0] == 0
    assert rows[-1, 1] == 58
    assert np.array_equal(rows[1:, 0], rows[:-1, 1])
    assert ((rows[:, 1] - rows[:, 0]) <= 10).all()
    assert {13, 43} <= set(rows[:, 0].tolist())


def test_a_plan_follows_from_seed_epoch_and_shard():
    def plan(seed, epoch, shard=0):
        return build_objective(seed, short_rate=0.8).plan(epoch, shard).tolist()

    assert plan(1, 2) == plan(1, 2)
    assert plan(1, 0) != plan(0, 0)
    assert plan(1, 0) != plan(1, 1)
    assert plan(1, 0) != plan(1, 0, shard=1)


def test_every_token_but_the_last_predicts_the_one_after_it():
    objective = build_objective()
    batch = objective.batch(plan_all(objective)[:2])
    text = [CLS, *range(5, 12), SEP], [CLS, *range(12, 18), SEP]
    assert batch.packed.input_ids.tolist() == [*text[0], *text[1]]
    assert batch.labels.tolist() == [*text[0][1:], *text[1][1:]]
    assert batch.positions.tolist() == [*range(8), *range(9, 16)]
    assert batch.packed.lengths == (9, 8)
    assert batch.packed.position_ids.tolist() == [*range(9), *range(8)]
    assert not batch.packed.token_type_ids.any()
    assert batch.target_counts == {"clm": 15}


def test_an_end_is_learned_where_a_sentence_ends_and_not_where_it_is_cut():
    objective = build_objective()
    batch = objective.batch(plan_all(objective)[2:5])  # one sentence of thirty tokens
    text = [CLS, *range(18, 28), SEP], [CLS, *range(28, 38), SEP], [CLS, *range(38, 48), SEP]
    assert batch.packed.input_ids.tolist() == [token for part in text for token in part]
    assert batch.labels.tolist() == [*text[0][1:-1], *text[1][1:-1], *text[2][1:]]
    assert batch.positions.tolist() == [*range(10), *range(12, 22), *range(24, 35)]
    assert batch.target_counts == {"clm": 31}


@pytest.mark.parametrize("num_examples", [1, 2])
def test_the_loss_is_that_of_the_next_words(num_examples):
    torch.manual_seed(0)
    objective, model = build_objective(), BertLMHeadModel(CONFIG).double().eval()
    batch = objective.batch(plan_all(objective)[-num_examples:])
    found = objective.loss(model, batch)
    expected = 0.0
    for row in batch.packed.input_ids.split(list(batch.packed.lengths)):
        scores = model(row[None])[0]
        expected += torch.nn.functional.cross_entropy(scores[:-1], row[1:], reduction="sum")
    assert_close(found.losses["clm"], expected)
    assert found.losses.keys() == found.correct.keys() == batch.target_counts.keys()


def test_operations_are_those_that_pytorch_counts():
    objective, model = build_objective(), BertLMHeadModel(CONFIG)
    batch = objective.batch(plan_all(objective)[2:4])  # of one length, so that nothing is padded
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        objective.loss(model, batch)
    expected = 3 * counter.get_total_flops()
    found = model.count_operations(batch.packed, len(batch.labels))
    assert found == close(expected)
