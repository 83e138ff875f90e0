"""Sentence pairs for next-sentence prediction, planned as ranges of a shard's tokens.

Consecutive sentences of a document fill an example up to its length. The example is split at a
random sentence into A and B; half of the time B is replaced by text of another document, and its
original sentences are used in the next example.

Two things differ from google-research/bert. The length of a short example is drawn for each
example, not for each document. And a pair whose B must be random, because only one sentence was
left, is balanced by a true pair later, so that half of the pairs stay random.

Source: Devlin et al. 2018, section 3.1 and appendix A.2; google-research/bert
`create_pretraining_data.py`.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.objectives.masking import Masker
from bertkit.tasks.objectives.objective import (
    MASKING,
    PLANNING,
    Batch,
    Examples,
    Objective,
    WordBatch,
)
from bertkit.tasks.objectives.settings import ObjectiveSettings
from bertkit.tokenization.tokenizer import Tokenizer

SHORTEST_PAIR = 2
A_START, A_STOP, B_START, B_STOP, IS_RANDOM = range(5)
NUM_COLUMNS = 5


@dataclass
class PairPlanner:
    """Plans the examples of one shard for one epoch."""

    sentence_offsets: NDArray[np.integer]  # starts in the shard's tokens, then the last end
    document_offsets: NDArray[np.integer]  # the first sentence of each, then the last end
    room: int  # most tokens of A and B
    short_rate: float  # share of examples that are cut to a random shorter length
    generator: np.random.Generator
    has_random_pairs: bool = True  # else B follows A; a document of one sentence has no B
    _sentences: list[int] = field(init=False, repr=False)
    _documents: list[int] = field(init=False, repr=False)
    _num_forced: int = field(default=0, init=False, repr=False)

    def plan(self) -> Examples:
        """Plan all examples, in the order of the shard, as int64 `[examples, 5]`."""
        self._sentences = self.sentence_offsets.tolist()
        self._documents = self.document_offsets.tolist()
        rows: list[tuple[int, int, int, int, int]] = []
        for document in range(len(self._documents) - 1):
            rows += self._plan_document(document)
        examples = np.array(rows, dtype=np.int64).reshape(-1, NUM_COLUMNS)
        return truncate_pairs(examples, self.room, self.generator)

    def _plan_document(self, document: int) -> list[tuple[int, int, int, int, int]]:
        """Plan the examples of one document, chunk by chunk."""
        offsets = self._sentences
        first, last = self._documents[document], self._documents[document + 1]
        rows = []
        sentence = first
        while sentence < last:
            target = self._draw_target()
            end = bisect_left(offsets, offsets[sentence] + target, sentence + 1, last + 1)
            end = min(max(end, sentence + 2), last)
            if end == last - 1:
                end = last  # a single sentence could only get a random B
            cut, has_random_b = self._draw_cut(sentence, end)
            room = max(1, target - (offsets[cut] - offsets[sentence]))
            b = self._draw_b(document, room) if has_random_b else None
            if b is not None:
                rows.append((offsets[sentence], offsets[cut], *b, 1))
                sentence = cut
            elif cut < end:
                rows.append((offsets[sentence], offsets[cut], offsets[cut], offsets[end], 0))
                sentence = end
            else:  # one sentence, and no other document to pair it with
                if not self.has_random_pairs:
                    rows.append((offsets[sentence], offsets[cut], offsets[cut], offsets[cut], 0))
                break
        return rows

    def _draw_target(self) -> int:
        """Draw the total number of tokens of A and B."""
        if self.generator.random() < self.short_rate:
            return int(self.generator.integers(SHORTEST_PAIR, self.room, endpoint=True))
        return self.room

    def _draw_cut(self, sentence: int, end: int) -> tuple[int, bool]:
        """Draw the sentence at which B begins, and whether B is random."""
        if end - sentence == 1:
            self._num_forced += 1
            return end, self.has_random_pairs
        cut = int(self.generator.integers(sentence + 1, end))
        if not self.has_random_pairs:
            return cut, False
        has_random_b = bool(self.generator.random() < 0.5)
        if has_random_b and self._num_forced >= 2:
            self._num_forced -= 2  # two forced random pairs replaced one random and one true pair
            return cut, False
        return cut, has_random_b

    def _draw_b(self, document: int, room: int) -> tuple[int, int] | None:
        """Draw a range of another document's tokens; None if there is no other document."""
        num_others = len(self._documents) - 2
        if num_others < 1:
            return None
        other = int(self.generator.integers(num_others))
        other += other >= document
        first, last = self._documents[other], self._documents[other + 1]
        start = int(self.generator.integers(first, last))
        offsets = self._sentences
        end = bisect_left(offsets, offsets[start] + room, start + 1, last)
        return offsets[start], offsets[end]


def truncate_pairs(examples: Examples, room: int, generator: np.random.Generator) -> Examples:
    """Truncate pairs that are too long: the longer segment first, at either end at random."""
    examples = examples.copy()
    length_a = examples[:, A_STOP] - examples[:, A_START]
    length_b = examples[:, B_STOP] - examples[:, B_START]
    kept_a = np.minimum(length_a, np.maximum(room - length_b, (room + 1) // 2))
    kept_b = np.minimum(length_b, room - kept_a)
    for start, stop, length, kept in (
        (A_START, A_STOP, length_a, kept_a),
        (B_START, B_STOP, length_b, kept_b),
    ):
        cut_in_front = generator.binomial(length - kept, 0.5)
        examples[:, start] += cut_in_front
        examples[:, stop] = examples[:, start] + kept
    return examples


@dataclass(frozen=True)
class MaskedBatch(WordBatch):
    """A masked batch; its labels are the original words at `positions`."""

    word_loss = "mlm"


@dataclass(frozen=True)
class MaskedPairs(Objective[Batch]):
    """Base of the objectives on `[CLS] A [SEP] B [SEP]` with masked words."""

    num_texts = 2
    num_evaluated = 64
    has_random_pairs: ClassVar[bool]  # whether half of the Bs are from another document

    masker: Masker

    @classmethod
    def build_parts(cls, tokenizer: Tokenizer, settings: ObjectiveSettings) -> dict[str, Any]:
        """Build the masker; errors as in `Masker`."""
        masker = Masker(
            settings,
            mask_id=tokenizer.mask_id,
            special_ids=tokenizer.special_ids,
            is_continuation=tokenizer.is_continuation,
        )
        return {"masker": masker}

    def plan(self, epoch: int, shard: int) -> Examples:
        """Plan the examples of one shard for one epoch, with `PairPlanner`."""
        source = self.shards[shard]
        return PairPlanner(
            sentence_offsets=source.sentence_offsets,
            document_offsets=source.document_offsets,
            room=self.max_length - self.template.pair.num_special,
            short_rate=self.short_rate,
            generator=np.random.default_rng((self.seed, PLANNING, epoch, shard)),
            has_random_pairs=self.has_random_pairs,
        ).plan()

    def corrupt(self, examples: Sequence[PlannedExample]) -> MaskedBatch:
        """Concatenate examples and mask them."""
        blocks, kinds, sizes = list[NDArray[np.integer]](), list[int](), list[int]()
        for texts in map(self._list_texts, examples):
            frame = self.template[len(texts) - 1]
            own = frame.weave_arrays(texts)
            blocks += own
            kinds += frame.types
            sizes.append(sum(map(len, own)))
        lengths = np.array(sizes)
        masked = self.masker.mask(
            np.concatenate(blocks).astype(np.int64),
            lengths,
            [self._mask_generator(example.key) for example in examples],
        )
        segments = np.repeat(kinds, [len(block) for block in blocks])
        return MaskedBatch(
            packed=PackedBatch.from_flat(masked.input_ids, lengths, segments),
            positions=torch.from_numpy(masked.positions),
            labels=torch.from_numpy(masked.labels),
            keys=tuple(example.key for example in examples),
        )

    def _list_texts(self, example: PlannedExample) -> list[NDArray[np.integer]]:
        """Return the tokens of A and B, or of A alone where B is empty."""
        shard, ends = self.shards[example.key.shard], example.row[A_START : B_STOP + 1].tolist()
        pairs = (ends[A_START : A_STOP + 1], ends[B_START : B_STOP + 1])
        return [shard.tokens(start, stop) for start, stop in pairs if start < stop]

    def _mask_generator(self, key: ExampleKey) -> np.random.Generator:
        """Return the generator of one example's mask, which depends only on seed and key."""
        words = ((self.seed << 32) + (key.epoch << 8) + MASKING, (key.shard << 40) + key.index)
        return np.random.Generator(np.random.Philox(key=np.array(words, dtype=np.uint64)))
