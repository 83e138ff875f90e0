"""What both sides of pre-training benchmarks learn from, and how each computes its loss."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.nn.head_blocks import length_mask
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.settings import PrepareSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings, train_tokenizer
from bertkit.tasks.objectives.bert import BertObjective, PreTrainingBatch
from bertkit_demo.python_docs import write_corpus
from program import be_quiet

SIDES = ("bertkit", "transformers")


@dataclass(frozen=True)
class Side:
    """How one side's model is loaded or built, what it is given of a batch, and its loss on that.

    `build` makes a model of random weights of a preset's sizes.
    """

    load: Callable[[Path], nn.Module]
    build: Callable[[BertConfig], nn.Module]
    give: Callable[[PreTrainingBatch], Any]
    loss_of: Callable[[Any, Any], Tensor]


def our_loss(model: BertForPreTraining, batch: PreTrainingBatch) -> Tensor:
    losses, counts = BertObjective.loss(model, batch).losses, batch.target_counts
    return torch.stack([losses[name] / count for name, count in counts.items()]).sum()


def their_loss(model: Any, padded: dict[str, Tensor]) -> Tensor:
    loss: Tensor = model(**padded).loss
    return loss


def pad_batch(batch: PreTrainingBatch) -> dict[str, Tensor]:
    mask = length_mask(batch.packed.lengths, torch.device("cpu"))
    labels = torch.full((batch.num_tokens,), -100)
    labels[batch.positions] = batch.labels
    flat = {
        "input_ids": batch.packed.input_ids,
        "token_type_ids": batch.packed.token_type_ids,
        "labels": labels,
    }
    padded = {name: torch.zeros(mask.shape, dtype=torch.int64) for name in flat}
    padded["labels"] -= 100
    for name, values in flat.items():
        padded[name][mask] = values
    return {
        **padded,
        "attention_mask": mask.long(),
        "next_sentence_label": batch.next_sentence_labels,
    }


def import_side(name: str) -> Side:
    """A side of `SIDES` and, with it, its library; the peer has SDPA attention."""
    if name == "bertkit":
        return Side(
            BertForPreTraining.from_pretrained, BertForPreTraining, lambda batch: batch, our_loss
        )
    from transformers import BertConfig as TheirConfig
    from transformers import BertForPreTraining as TheirModel

    be_quiet()
    return Side(
        partial(TheirModel.from_pretrained, attn_implementation="sdpa", dtype=torch.float32),
        lambda config: TheirModel(TheirConfig(**config.to_dict(), attn_implementation="sdpa")),
        pad_batch,
        their_loss,
    )


def prepare_documentation(folder: Path) -> Path:
    """Shards of Python's own documentation with a vocabulary of the published size."""
    settings = TrainTokenizerSettings(vocab_size=30_522, min_frequency=1)
    corpus = write_corpus(folder / "corpus", share=0.02)
    training, held_out = [str(corpus.training)], [str(corpus.held_out)]
    train_tokenizer([*training, *held_out], folder / "tokenizer", settings)
    prepare(
        training,
        folder / "tokenizer",
        folder / "shards",
        PrepareSettings(held_out=0.0),
        held_out_inputs=held_out,
    )
    return folder / "shards"
