"""A batch is `[CLS] A [SEP] B [SEP]` with the right labels, and its arithmetic is counted right."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from torch.utils.flop_counter import FlopCounterMode

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.tasks.objectives.bert import BertObjective, MaskedObjective
from bertkit.tasks.objectives.masking import Masker
from bertkit.tasks.objectives.settings import MaskingSettings
from bertkit.tokenization.encoding import Template

VOCAB_SIZE = 60
CLS, SEP, MASK = 2, 3, 4


@dataclass(frozen=True)
class FakeShard:
    content: np.ndarray
    sentence_offsets: np.ndarray = field(default_factory=lambda: np.arange(0, 21, 2))
    document_offsets: np.ndarray = field(default_factory=lambda: np.array([0, 3, 10]))

    def tokens(self, start: int, stop: int) -> np.ndarray:
        return self.content[start:stop]


def build_objective(seed: int = 0, kind=BertObjective):
    masker = Masker(
        MaskingSettings(mask_rate=0.3),
        mask_id=MASK,
        special_ids=frozenset(range(5)),
        is_continuation=np.zeros(VOCAB_SIZE, dtype=np.bool_),
    )
    shards = [FakeShard(np.arange(10, 40, dtype=np.uint16)), FakeShard(np.arange(40, 60))]
    return kind(
        shards=shards,
        masker=masker,
        seed=seed,
        max_length=32,
        short_rate=0.0,
        template=Template.of_bert(CLS, SEP),
    )


def example(shard: int, index: int, *row: int) -> PlannedExample:
    return PlannedExample(ExampleKey(0, shard, index), np.array(row))


TRUE_PAIR = example(0, 0, 0, 3, 3, 5, 0)
RANDOM_PAIR = example(1, 7, 0, 2, 10, 14, 1)


def test_a_batch_lays_examples_end_to_end_and_labels_them():
    batch = build_objective().batch([TRUE_PAIR, RANDOM_PAIR])
    ids = batch.packed.input_ids.clone()
    assert len(batch.positions) >= 2
    ids[batch.positions] = batch.labels
    assert ids.tolist() == [
        *[CLS, 10, 11, 12, SEP, 13, 14, SEP],
        *[CLS, 40, 41, SEP, 50, 51, 52, 53, SEP],
    ]
    assert batch.packed.token_type_ids.tolist() == [0] * 5 + [1] * 3 + [0] * 4 + [1] * 5
    assert batch.packed.position_ids.tolist() == [*range(8), *range(9)]
    assert batch.packed.lengths == (8, 9)
    assert batch.next_sentence_labels.tolist() == [0, 1]  # 0 is IsNext, as in the published heads
    assert batch.target_counts == {"mlm": len(batch.labels), "nsp": 2}
    assert batch.describe() == "0/0/0, 0/1/7"


def test_a_mask_follows_from_seed_and_example_whatever_stands_beside_it():
    together = build_objective().batch([TRUE_PAIR, RANDOM_PAIR])
    alone = build_objective().batch([RANDOM_PAIR])
    assert torch.equal(together.packed.input_ids[8:], alone.packed.input_ids)
    others = [build_objective(seed).batch([RANDOM_PAIR]).packed.input_ids for seed in range(1, 9)]
    assert any(not torch.equal(alone.packed.input_ids, other) for other in others)


def test_a_mask_follows_from_epoch_shard_and_number():
    def hide(epoch, shard, number):
        key, row = ExampleKey(epoch, shard, number), np.array((0, 10, 10, 20, 0))
        return build_objective().batch([PlannedExample(key, row)]).positions.tolist()

    assert hide(0, 0, 0) == hide(0, 0, 0)
    assert hide(0, 0, 0) not in (hide(1, 0, 0), hide(0, 1, 0), hide(0, 0, 1))


@pytest.mark.parametrize("kind", [BertObjective, MaskedObjective])
def test_a_plan_follows_from_seed_epoch_and_shard(kind):
    def plan(seed, epoch, shard):
        objective = replace(build_objective(seed, kind), max_length=9, short_rate=0.8)
        return objective.plan(epoch, shard).tolist()

    assert plan(0, 0, 0) == plan(0, 0, 0)
    assert plan(0, 0, 0) not in (plan(1, 0, 0), plan(0, 1, 0), plan(0, 0, 1))


CONFIG = BertConfig(
    vocab_size=VOCAB_SIZE,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=40,
)


def test_without_next_sentence_the_same_words_are_masked_and_b_may_be_missing():
    objective = build_objective(kind=MaskedObjective)
    alone = example(0, 1, 5, 8, 8, 8, 0)
    batch = objective.batch([TRUE_PAIR, alone])
    assert torch.equal(
        batch.packed.input_ids[:8], build_objective().batch([TRUE_PAIR]).packed.input_ids
    )
    ids = batch.packed.input_ids.clone()
    ids[batch.positions] = batch.labels
    assert ids.tolist()[8:] == [CLS, 15, 16, 17, SEP]
    assert batch.packed.token_type_ids.tolist() == [0] * 5 + [1] * 3 + [0] * 5
    assert batch.packed.position_ids.tolist() == [*range(8), *range(5)]
    assert batch.packed.lengths == (8, 5)
    assert batch.target_counts == {"mlm": len(batch.labels)}


def test_without_next_sentence_the_loss_is_that_of_the_words():
    torch.manual_seed(0)
    batch = build_objective(kind=MaskedObjective).batch([TRUE_PAIR])
    model = BertForMaskedLM(CONFIG).eval()
    found = MaskedObjective.loss(model, batch)
    scores = model.score_words(model.encoder(batch.packed)[batch.positions])
    expected = torch.nn.functional.cross_entropy(scores, batch.labels, reduction="sum")
    assert found.losses.keys() == {"mlm"}
    assert_close(found.losses["mlm"], expected)


@pytest.mark.parametrize(("kind", "num_examples"), [(BertObjective, 3), (MaskedObjective, 1)])
def test_operations_are_those_that_pytorch_counts(kind, num_examples):
    batch = build_objective(kind=kind).batch([TRUE_PAIR] * num_examples)
    model = kind.model_kind(CONFIG)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        losses = kind.loss(model, batch).losses
    expected = 3 * counter.get_total_flops()  # the way back costs twice the way forth
    assert model.count_operations(batch.packed, len(batch.labels)) == close(expected)
    assert losses.keys() == batch.target_counts.keys()
