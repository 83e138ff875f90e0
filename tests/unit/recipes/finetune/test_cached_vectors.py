"""The gradients of parts are those of the whole batch, in the memory of a part."""

import pytest
import torch
from tests.closeness import assert_close

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.nn.packing import PackedBatch
from bertkit.recipes.finetune import cached_vectors
from bertkit.recipes.finetune.cached_vectors import (
    MAX_FEATURES,
    compute_in_parts,
    count_parts,
    divide_by_length,
)
from bertkit.tasks.embed.losses import VectorLoss, in_batch_loss, number_texts

NUM_PAIRS, NUM_LABELS = 12, 8


def build(dropout):
    """A model whose logits stand for vectors, away from its initial weights."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        id2label={number: str(number) for number in range(NUM_LABELS)},
    )
    model = BertForSequenceClassification(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double().train()


def draw_batch():
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(2, 30, (2 * NUM_PAIRS,), generator=generator).tolist()
    ids = [torch.randint(5, 50, (length,), generator=generator).tolist() for length in lengths]
    return PackedBatch.from_single(ids)


def find_gradients(model, batch, num_parts):
    """The loss and the gradients of all weights."""
    model.zero_grad()
    torch.manual_seed(2)
    vectors = compute_in_parts(model.scores, batch, num_parts)
    found: VectorLoss = in_batch_loss(vectors, (2,) * NUM_PAIRS, number_texts(batch), 0.05)
    found.total.backward()
    return found.total.detach(), [each.grad for each in model.parameters()]


@pytest.mark.parametrize("num_parts", [2, 5, 100])
def test_loss_and_gradients_are_those_of_the_whole_batch(num_parts):
    model, batch = build(dropout=0.0), draw_batch()
    whole = find_gradients(model, batch, 1)
    assert all(float(gradient.abs().max()) > 0 for gradient in whole[1])
    assert_close(find_gradients(model, batch, num_parts), whole)


def test_a_part_drops_the_same_numbers_when_it_is_computed_again(monkeypatch):
    model, batch = build(dropout=0.2), draw_batch()
    found = find_gradients(model, batch, 4)

    def compute_once(function, part, **_options):
        return function(part)

    monkeypatch.setattr(cached_vectors, "checkpoint", compute_once)
    assert_close(found, find_gradients(model, batch, 4))


def test_the_memory_of_parts_is_kept_by_no_vector():
    model, batch = build(dropout=0.1), draw_batch()
    kept = {}
    for num_parts in (1, 4):
        kept[num_parts] = 0

        def count(tensor, num_parts=num_parts):
            kept[num_parts] += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            vectors = compute_in_parts(model.scores, batch, num_parts)
        assert vectors.requires_grad
    assert kept[4] < kept[1] / 20


def test_parts_are_of_similar_lengths_and_sizes_with_the_longest_first():
    lengths = [3, 30, 8, 8, 25, 2, 10, 4]
    parts = divide_by_length(lengths, 3)
    assert parts == [[1], [4, 6], [2, 3, 7, 0, 5]]
    assert divide_by_length([4, 4], 5) == [[0], [1]]


def test_a_batch_is_divided_by_default_where_it_is_large():
    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12)
    sizes = {8192: 1, 8193: 2, 40_000: 5}
    for num_tokens, num_parts in sizes.items():
        batch = PackedBatch.from_single([[1] * num_tokens])
        assert count_parts(config, batch) == num_parts
    assert MAX_FEATURES["cuda"] > MAX_FEATURES["cpu"]
