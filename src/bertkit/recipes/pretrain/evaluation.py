"""Evaluation on held-out text."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from bertkit.base.errors import InputError
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import Shard, ShardSet
from bertkit.metrics.perplexity import find_bits_per_character, find_perplexity
from bertkit.models.bert.heads import WordScoringBert
from bertkit.objectives.masking import MaskingSettings
from bertkit.objectives.objective import Objective
from bertkit.objectives.table import OBJECTIVES
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.step import evaluate_batches

# Held-out examples are planned and masked alike for every run: with a fixed seed, and as in the
# paper, so that runs with other mask rates can be compared.
EVALUATION_SEED = 2**31
EVALUATION_MASKS = MaskingSettings()


def evaluate_words(
    model: WordScoringBert,
    batches: Sequence[Any],
    objective: Objective[Any],
    tokenizer: Tokenizer,
    device: torch.device,
    advance: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Return mean losses and accuracies, perplexity and bits per character.

    `advance` is called with 1 after each batch.
    """
    metrics = evaluate_batches(model, batches, objective.score, device, advance)
    num_targets = sum(len(batch.labels) for batch in batches)
    lengths = tokenizer.token_lengths
    num_characters = sum(int(lengths[batch.labels.numpy()].sum()) for batch in batches)
    words = objective.batch_kind.word_loss
    loss = metrics[f"{words}_loss"]
    bits = find_bits_per_character(loss, num_targets, max(1, num_characters))
    more = {"perplexity": find_perplexity(loss), "bits_per_character": bits}
    return {**metrics, **{f"{words}_{name}": value for name, value in more.items()}}


def build_objective(
    parts: Sequence[Shard], shards: ShardSet, tokenizer: Tokenizer, settings: PretrainSettings
) -> Objective[Any]:
    """Build the objective over some of the shards."""
    kind = OBJECTIVES[settings.objective]
    return kind.build(parts, tokenizer, settings, settings.seed, shards.token_counts)


def held_out_batches(
    shards: ShardSet, tokenizer: Tokenizer, settings: PretrainSettings
) -> list[Any]:
    """Return the held-out batches; every evaluation of every run uses the same masks."""
    if not shards.held_out:
        raise InputError(
            "the shards have no held-out text; prepare again with a larger --held-out share"
        )
    masked_alike = settings.model_copy(update=dict(EVALUATION_MASKS))
    objective = build_objective(shards.held_out, shards, tokenizer, masked_alike)
    objective = replace(objective, seed=EVALUATION_SEED)
    order = ExampleOrder(
        [shard.num_tokens for shard in shards.held_out], objective.plan, seed=EVALUATION_SEED
    )
    examples = list(islice(order.first_epoch(), settings.eval_sequences))
    size = objective.num_evaluated
    batches = [
        objective.batch(examples[start : start + size]) for start in range(0, len(examples), size)
    ]
    if not any(len(batch.labels) for batch in batches):
        raise InputError(
            "the held-out text has no known word to mask; check that it was prepared with the"
            " right tokenizer"
        )
    return batches
