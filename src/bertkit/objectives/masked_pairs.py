"""The base of the masked LM objectives: pairs of text segments with masked words.

Source: Devlin et al. 2018, section 3.1 and appendix A.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.data.order import ExampleKey, PlannedExample
from bertkit.nn.packing import PackedBatch
from bertkit.objectives.masking import Masker
from bertkit.objectives.objective import (
    MASKING,
    PLANNING,
    Batch,
    Examples,
    Objective,
    WordBatch,
    number_positions,
)
from bertkit.objectives.sentence_pairs import A_START, A_STOP, B_START, B_STOP, PairPlanner
from bertkit.objectives.settings import ObjectiveSettings
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class MaskedBatch(WordBatch):
    """A masked batch; its labels are the original words at `positions`."""

    word_loss = "mlm"


@dataclass(frozen=True)
class MaskedPairs(Objective[Batch]):
    """Base of the objectives on `[CLS] A [SEP] B [SEP]` with masked words.

    Args:
        masker: chooses and replaces tokens.
    """

    num_segments = 2
    num_evaluated = 64
    has_random_pairs: ClassVar[bool]  # whether half of the Bs are from another document

    masker: Masker

    @classmethod
    def build_parts(
        cls, tokenizer: Tokenizer, settings: ObjectiveSettings, token_counts: NDArray[np.integer]
    ) -> dict[str, Any]:
        """Build the masker; errors as in `Masker`."""
        masker = Masker(
            settings,
            mask_id=tokenizer.mask_id,
            special_ids=tokenizer.special_ids,
            is_continuation=tokenizer.is_continuation,
            token_counts=token_counts,
        )
        return {"masker": masker}

    def plan(self, epoch: int, shard: int) -> Examples:
        """Plan the examples of one shard for one epoch, with `PairPlanner`."""
        source = self.shards[shard]
        return PairPlanner(
            sentence_offsets=source.sentence_offsets,
            document_offsets=source.document_offsets,
            max_length=self.max_length,
            short_rate=self.short_rate,
            generator=np.random.default_rng((self.seed, PLANNING, epoch, shard)),
            has_random_pairs=self.has_random_pairs,
        ).plan()

    def corrupt(self, examples: Sequence[PlannedExample]) -> MaskedBatch:
        """Concatenate examples and mask them."""
        rows = np.stack([example.row for example in examples])
        lengths_a = rows[:, A_STOP] - rows[:, A_START] + 2
        lengths_b = rows[:, B_STOP] - rows[:, B_START]
        lengths_b += lengths_b > 0  # its [SEP]
        lengths = lengths_a + lengths_b
        masked = self.masker.mask(
            np.concatenate(self._list_pieces(examples)).astype(np.int64),
            lengths,
            [self._mask_generator(example.key) for example in examples],
        )
        segments = np.repeat(
            np.tile([0, 1], len(rows)), np.stack([lengths_a, lengths_b], axis=1).ravel()
        )
        return MaskedBatch(
            packed=PackedBatch(
                input_ids=torch.from_numpy(masked.input_ids),
                token_type_ids=torch.from_numpy(segments),
                position_ids=torch.from_numpy(number_positions(lengths)),
                lengths=tuple(lengths.tolist()),
            ),
            positions=torch.from_numpy(masked.positions),
            labels=torch.from_numpy(masked.labels),
            keys=tuple(example.key for example in examples),
        )

    def _list_pieces(self, examples: Sequence[PlannedExample]) -> list[NDArray[np.integer]]:
        """List the parts of the sequences, in order; an empty B has no [SEP]."""
        cls, sep = np.array([self.cls_id]), np.array([self.sep_id])
        pieces: list[NDArray[np.integer]] = []
        for example in examples:
            shard, row = self.shards[example.key.shard], example.row
            pieces += [cls, shard.tokens(int(row[A_START]), int(row[A_STOP])), sep]
            if row[B_START] < row[B_STOP]:
                pieces += [shard.tokens(int(row[B_START]), int(row[B_STOP])), sep]
        return pieces

    def _mask_generator(self, key: ExampleKey) -> np.random.Generator:
        """Return the generator of one example's mask, which depends only on seed and key."""
        words = ((self.seed << 32) + (key.epoch << 8) + MASKING, (key.shard << 40) + key.index)
        return np.random.Generator(np.random.Philox(key=np.array(words, dtype=np.uint64)))
