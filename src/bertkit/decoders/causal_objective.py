"""The causal language model objective: predict the next word at each token.

An example is `[CLS] text [SEP]`, where the text is as many consecutive sentences of a document as
fit. Each token of a document is in one example per epoch, and predicted once. [SEP] is predicted
only after a complete sentence, not where a sentence that is too long is cut, so that the model
learns where a text may end.

Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", section
3.1; Devlin et al. 2018, section 5.1 ("LTR & No NSP").
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.data.order import PlannedExample
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.objectives.objective import PLANNING, Examples, Objective, WordBatch
from bertkit.training.job import Scores

START, STOP, IS_CUT = range(3)


@final
@dataclass(frozen=True)
class CausalBatch(WordBatch):
    """Sequences in which every token but the last predicts the next one.

    If the text ends within a sentence, its last token predicts nothing either.
    """

    word_loss = "clm"


@final
@dataclass(frozen=True)
class CausalObjective(Objective[CausalBatch]):
    """Predicts the next word of running text."""

    model_kind = BertLMHeadModel
    batch_kind = CausalBatch
    progress_metrics = MappingProxyType({"clm_accuracy": "next-word acc."})
    num_texts = 1
    num_evaluated = 8  # logits of all words at every token are large
    sets_length = True

    def plan(self, epoch: int, shard: int) -> Examples:
        """Plan the examples of one shard for one epoch.

        A row is start and stop among the shard's tokens, and 1 if it ends within a sentence.
        """
        source = self.shards[shard]
        offsets: list[int] = source.sentence_offsets.tolist()
        documents: list[int] = source.document_offsets.tolist()
        generator = np.random.default_rng((self.seed, PLANNING, epoch, shard))
        rows = [
            row
            for first, last in pairwise(documents)
            for row in self._cut_document(offsets, first, last, generator)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, IS_CUT + 1)

    def _cut_document(
        self, offsets: list[int], first: int, last: int, generator: np.random.Generator
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield rows of sentences (first, end, is_cut), some of a random shorter length."""
        room = self.max_length - self.template.single.num_special
        sentence = first
        while sentence < last:
            target = room
            if generator.random() < self.short_rate:
                target = int(generator.integers(1, room, endpoint=True))
            start = offsets[sentence]
            sentence = bisect_right(offsets, start + target, sentence + 2, last + 1) - 1
            stop = offsets[sentence]
            for begin in range(start, stop, room):
                yield begin, min(begin + room, stop), begin + room < stop

    def batch(self, examples: Sequence[PlannedExample]) -> CausalBatch:
        """Concatenate examples, `[CLS] text [SEP]`, with the next tokens as labels."""
        frame = self.template.single
        pieces: list[NDArray[np.integer]] = []
        for example in examples:
            shard, row = self.shards[example.key.shard], example.row
            pieces += frame.weave_arrays([shard.tokens(int(row[START]), int(row[STOP]))])
        rows = np.stack([example.row for example in examples])
        lengths = rows[:, STOP] - rows[:, START] + frame.num_special
        packed = PackedBatch.from_flat(np.concatenate(pieces), lengths)
        ends = np.cumsum(lengths)
        predicts = np.ones(packed.num_tokens, dtype=np.bool_)
        predicts[ends - 1] = False
        predicts[ends[rows[:, IS_CUT] > 0] - 2] = False  # [SEP] stands within a sentence
        positions = torch.from_numpy(np.flatnonzero(predicts))
        return CausalBatch(
            packed=packed,
            positions=positions,
            labels=packed.input_ids[positions + 1],
            keys=tuple(example.key for example in examples),
        )

    @staticmethod
    def loss(model: BertLMHeadModel, batch: CausalBatch) -> Scores:
        """Compute the loss of a batch, in float32 whatever the model's precision."""
        loss, num_correct = model.next_loss(batch.packed, batch.positions, batch.labels)
        return Scores(losses={"clm": loss}, correct={"clm": num_correct})
