"""Train a skip-thought sentence encoder on shards: each sentence predicts its neighbors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.data.shards import Shard, ShardSet
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.objectives.objective import Examples
from bertkit.training.job import Scores
from bertkit_studies.baselines.plan import BaselinePlan
from bertkit_studies.baselines.run import RecurrentResult, train
from bertkit_studies.baselines.settings import SkipThoughtSettings
from bertkit_studies.baselines.shard_batches import ShardBatches
from bertkit_studies.recurrent.config import SkipThoughtConfig
from bertkit_studies.recurrent.skip_thought import Side, SkipThought

SPECIAL_TOKENS = 2  # [CLS] sentence [SEP]


@dataclass(frozen=True)
class Written:
    """Sentences to predict, with the next token of each position as label."""

    packed: PackedBatch
    labels: Int[Tensor, " tokens"]


@dataclass(frozen=True)
class NeighborSentences:
    """A batch of sentences with their previous and next sentences.

    Attributes:
        middle: the sentences to encode.
        neighbors: the sentences to predict, by side.
        keys: the examples' keys.
    """

    middle: PackedBatch
    neighbors: dict[Side, Written]
    keys: tuple[ExampleKey, ...]

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all three sentences."""
        written = sum(one.packed.num_tokens for one in self.neighbors.values())
        return self.middle.num_tokens + written

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of targets of each loss."""
        return {side: len(written.labels) for side, written in self.neighbors.items()}

    def describe(self) -> str:
        """Describe the batch for messages."""
        return ", ".join(f"{key.epoch}/{key.shard}/{key.index}" for key in self.keys)

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""
        moved = {
            side: Written(written.packed.to(device), written.labels.to(device, non_blocking=True))
            for side, written in self.neighbors.items()
        }
        return replace(self, middle=self.middle.to(device), neighbors=moved)


@dataclass(frozen=True)
class SentencePlanner:
    """Finds sentences with two neighbors and builds batches from them.

    Args:
        shards: the text.
        max_length: maximum tokens of a sentence, with special tokens; longer ones are truncated.
        cls_id: id of [CLS].
        sep_id: id of [SEP].
    """

    shards: Sequence[Shard]
    max_length: int
    cls_id: int
    sep_id: int

    def plan(self, epoch: int, shard: int) -> Examples:
        """Return four token offsets for each sentence with neighbors on both sides.

        They are the starts of the sentence before, of the sentence and of the one after, and the
        end of that one.
        """
        del epoch
        source = self.shards[shard]
        offsets = source.sentence_offsets.astype(np.int64)
        begins_document = np.zeros(len(offsets), dtype=np.bool_)
        begins_document[source.document_offsets] = True
        middle = np.flatnonzero(~begins_document[:-1] & ~begins_document[1:])
        return np.stack([offsets[middle + place] for place in (-1, 0, 1, 2)], axis=1)

    def batch(self, examples: Sequence[PlannedExample]) -> NeighborSentences:
        """Build a batch: the middle sentence of each example and its two neighbors."""
        before, middle, after = (
            [self._cut(example, place) for example in examples] for place in range(3)
        )
        whole = [np.concatenate([one, [self.sep_id]]) for one in middle]
        return NeighborSentences(
            middle=_pack(whole),
            neighbors={"before": self._write(before), "after": self._write(after)},
            keys=tuple(example.key for example in examples),
        )

    def _cut(self, example: PlannedExample, place: int) -> NDArray[np.int64]:
        """Return one of the three sentences, truncated, after [CLS]."""
        start, stop = example.row[place : place + 2].tolist()
        stop = min(stop, start + self.max_length - SPECIAL_TOKENS)
        tokens = self.shards[example.key.shard].tokens(start, stop)
        return np.concatenate([[self.cls_id], tokens]).astype(np.int64)

    def _write(self, sentences: Sequence[NDArray[np.int64]]) -> Written:
        labels = [np.concatenate([sentence[1:], [self.sep_id]]) for sentence in sentences]
        return Written(_pack(sentences), torch.from_numpy(np.concatenate(labels)))


def _pack(sentences: Sequence[NDArray[np.int64]]) -> PackedBatch:
    lengths = np.array([len(sentence) for sentence in sentences])
    return PackedBatch.from_flat(np.concatenate(sentences), lengths)


def train_skip_thought(data: Path, output: Path, settings: SkipThoughtSettings) -> RecurrentResult:
    """Train a sentence encoder on shards; raises what `run.train` raises.

    Args:
        data: a folder that `prepare` wrote.
        output: the run's folder.
        settings: model and training settings.
    """
    return train(lambda: plan_skip_thought(data, settings), output, settings, [data])


def plan_skip_thought(data: Path, settings: SkipThoughtSettings) -> BaselinePlan:
    """Assemble data, net and losses of a run."""
    shards = ShardSet.open(data)
    tokenizer = shards.load_tokenizer()
    config = SkipThoughtConfig(
        vocab_size=tokenizer.vocab_size,
        **settings.model_dump(include=set(SkipThoughtConfig.model_fields)),
    )

    def build(parts: Sequence[Shard], seed: int) -> SentencePlanner:
        del seed  # unused: every sentence is an example in every epoch
        return SentencePlanner(parts, settings.max_length, tokenizer.cls_id, tokenizer.sep_id)

    batches = ShardBatches(shards, build, settings.seed)
    return BaselinePlan(
        config=config,
        begin=lambda: SkipThought(config),
        load=SkipThought.from_pretrained,
        tokenizer=tokenizer,
        data_fingerprint=shards.fingerprint,
        examples_at=lambda step: range(
            step * settings.batch_size, (step + 1) * settings.batch_size
        ),
        collate=batches.training(),
        num_micro_batches=settings.accumulate,
        held_out=batches.held_out(settings.eval_examples),
        score=score,
        judge=score,
        count_operations=count_operations,
        progress_metrics={"before_accuracy": "word before", "after_accuracy": "word after"},
    )


def score(model: SkipThought, batch: NeighborSentences) -> Scores:
    """Return loss and correct predictions of each side."""
    vectors = model.encode(batch.middle)
    found = {
        side: model.neighbor_loss(side, vectors, written.packed, written.labels)
        for side, written in batch.neighbors.items()
    }
    return Scores(
        losses={side: loss for side, (loss, _) in found.items()},
        correct={side: num_correct for side, (_, num_correct) in found.items()},
    )


def count_operations(model: SkipThought, batch: NeighborSentences) -> float:
    """Return the floating-point operations of a training step on a batch."""
    written = (one.packed for one in batch.neighbors.values())
    return model.count_operations(batch.middle, *written)
