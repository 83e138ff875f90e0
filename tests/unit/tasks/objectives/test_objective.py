"""A batch goes into named tensors and comes back, and what isn't one is refused."""

from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

import pytest
import torch

from bertkit.base.errors import DamagedFileError
from bertkit.data.order import ExampleKey
from bertkit.decoders.causal_objective import CausalBatch
from bertkit.models.bert.config import BertConfig
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.objectives.bert import PreTrainingBatch
from bertkit.tasks.objectives.masked_pairs import MaskedBatch
from bertkit.tasks.objectives.objective import WordBatch, batch_from_tensors, batch_tensors
from bertkit.tasks.objectives.table import OBJECTIVES

CONFIG = BertConfig.preset("tiny", vocab_size=50)
SOURCE = Path("batches.safetensors")
THREE_SEQUENCES = {
    "next_sentence_labels": torch.tensor([0, 1, 0]),
    "keys": torch.zeros(3, 3, dtype=torch.int64),
}
NO_SEQUENCES = {
    name: torch.zeros((0, 3) if name == "keys" else 0, dtype=torch.int64)
    for name in (
        *("input_ids", "token_type_ids", "position_ids", "lengths", "positions", "labels"),
        *("next_sentence_labels", "keys"),
    )
}


def build_batch() -> PreTrainingBatch:
    return PreTrainingBatch(
        packed=PackedBatch.from_sequences([[2, 7, 9], [2, 8]], [[0, 0, 1], [0, 1]]),
        positions=torch.tensor([1, 4]),
        labels=torch.tensor([30, 31]),
        next_sentence_labels=torch.tensor([0, 1]),
        keys=(ExampleKey(0, 1, 2), ExampleKey(3, 4, 5)),
    )


@pytest.mark.parametrize("objective", OBJECTIVES.values())
def test_all_that_a_kind_of_batch_has_is_kept(objective):
    more = {field.name for field in fields(objective.batch_kind)}
    assert more - {field.name for field in fields(WordBatch)} == set(
        objective.batch_kind.label_limits
    )


def test_a_batch_comes_back_as_it_was():
    tensors = batch_tensors(build_batch())
    again = batch_from_tensors(tensors, PreTrainingBatch, CONFIG, SOURCE)
    assert again.keys == build_batch().keys
    assert again.packed.lengths == (3, 2)
    for name, tensor in batch_tensors(again).items():
        assert torch.equal(tensor, tensors[name]), name


def test_a_batch_in_which_nothing_is_masked_comes_back_too():
    tensors = batch_tensors(build_batch())
    empty = torch.zeros(0, dtype=torch.int64)
    tensors |= {"positions": empty, "labels": empty}
    assert batch_from_tensors(tensors, PreTrainingBatch, CONFIG, SOURCE).target_counts == {
        "mlm": 0,
        "nsp": 2,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"strange": torch.tensor([1])},
        {"lengths": torch.tensor([3, 3])},
        {"lengths": torch.tensor([5, 0])},
        {"lengths": torch.tensor([6, -1])},
        {"lengths": torch.tensor(5)},
        {"lengths": torch.tensor([2.5, 2.5])},
        {"lengths": torch.tensor([torch.nan, 5.0])},
        {"lengths": torch.tensor([3 + 1j, 2 + 0j])},
        {"lengths": torch.tensor([3.0, 2.0]).to(torch.float8_e4m3fn)},
        {"lengths": torch.tensor([2**63 - 1, 2**63 - 1, 7])} | THREE_SEQUENCES,  # 5 in 64 bits
        NO_SEQUENCES,
        {"input_ids": torch.tensor([2, 7, 50, 2, 8])},
        {"input_ids": torch.tensor([2, 7, -1, 2, 8])},
        {"token_type_ids": torch.tensor([0, 0, 2, 0, 1])},
        {"position_ids": torch.tensor([0, 1, 512, 0, 1])},
        {"positions": torch.tensor([1, 5])},
        {"positions": torch.tensor([1])},
        {"labels": torch.tensor([30, 50])},
        {"next_sentence_labels": torch.tensor([0, 2])},
        {"keys": torch.tensor([[0, 1], [3, 4]])},
    ],
)
def test_what_is_no_batch_is_refused(change):
    with pytest.raises(DamagedFileError, match=r"batches\.safetensors doesn't hold the tensors"):
        batch_from_tensors(
            {**batch_tensors(build_batch()), **change}, PreTrainingBatch, CONFIG, SOURCE
        )


@pytest.mark.parametrize("name", list(batch_tensors(build_batch())))
def test_a_missing_tensor_is_noticed(name):
    tensors = batch_tensors(build_batch())
    del tensors[name]
    with pytest.raises(DamagedFileError):
        batch_from_tensors(tensors, PreTrainingBatch, CONFIG, SOURCE)


@pytest.mark.parametrize("kind", [MaskedBatch, CausalBatch])
def test_batches_without_pairs_have_no_labels_of_them(kind):
    whole = batch_tensors(build_batch())
    tensors = {name: tensor for name, tensor in whole.items() if name != "next_sentence_labels"}
    again = batch_from_tensors(tensors, kind, CONFIG, SOURCE)
    assert type(again) is kind
    assert batch_tensors(again).keys() == tensors.keys()
    with pytest.raises(DamagedFileError):
        batch_from_tensors(whole, kind, CONFIG, SOURCE)


@dataclass(frozen=True)
class TopicBatch(WordBatch):
    word_loss = "words"
    label_limits = MappingProxyType({"topics": 4})

    topics: torch.Tensor


def test_labels_of_another_objective_are_kept_within_their_limits():
    values = {field.name: getattr(build_batch(), field.name) for field in fields(WordBatch)}
    tensors = batch_tensors(TopicBatch(**values, topics=torch.tensor([3, 0])))
    assert batch_from_tensors(tensors, TopicBatch, CONFIG, SOURCE).topics.tolist() == [3, 0]
    tensors["topics"][0] = 4
    with pytest.raises(DamagedFileError):
        batch_from_tensors(tensors, TopicBatch, CONFIG, SOURCE)
