"""Encoded examples, and their logits, computed batch by batch."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from bertkit.models.bert.config import Scored
from bertkit.nn.packed_ids import PackedIds, plan_batches

IGNORED_LABEL = -100


class TokenSequence(NamedTuple):
    """An encoded sequence, special tokens included."""

    ids: list[int]
    segments: list[int]  # 0 for A, 1 for B


@dataclass(frozen=True)
class Encoded:
    """An encoded example.

    Attributes:
        sequences: one; several for the windows of a long text, or for multiple choice.
        labels: targets of the loss, one row for each unit that the task scores (example, token or
            window); a batch concatenates them. -100 is ignored. None if there is no answer.
        is_cut: whether tokens were left out.
        alignment: task-specific data that maps tokens back to the text.
        num_flags: for multi-label tasks, the number of labels: `labels` then holds the ids of the
            example's own labels, and becomes a multi-hot row in a batch.
    """

    sequences: tuple[TokenSequence, ...]
    labels: npt.NDArray[np.number] | None = None
    is_cut: bool = False
    alignment: Any = None
    num_flags: int | None = None

    @property
    def label_rows(self) -> npt.NDArray[np.number]:
        """Targets of the loss; for multi-label tasks one multi-hot row."""
        assert self.labels is not None, "only examples with an answer have rows"
        if self.num_flags is None:
            return self.labels
        row = np.zeros((1, self.num_flags), dtype=np.float32)
        row[0, self.labels] = 1.0
        return row

    @property
    def num_tokens(self) -> int:
        """Number of tokens in all sequences."""
        return sum(len(sequence.ids) for sequence in self.sequences)

    def count(self, token_id: int) -> int:
        """Count a token in all sequences."""
        return sum(ids.count(token_id) for ids, _ in self.sequences)


def pack_sequences(sequences: Sequence[TokenSequence]) -> PackedIds:
    """Concatenate sequences."""
    return PackedIds.from_sequences(
        [sequence.ids for sequence in sequences], [sequence.segments for sequence in sequences]
    )


class EncodedTable(Sequence[Encoded]):
    """A sequence of encoded examples with labels, stored compactly and rebuilt on access."""

    def __init__(self) -> None:
        self._ids, self._segments = array("i"), array("b")
        self._sequence_stops, self._example_stops = array("q", [0]), array("q", [0])
        self._labels, self._label_stops = bytearray(), array("q", [0])
        self._label_type: npt.DTypeLike = np.int64
        self._label_shape: tuple[int, ...] = ()  # of one row
        self._num_flags: int | None = None
        self._is_cut = bytearray()
        self._alignments: list[Any] = []

    def extend(self, encoded: Iterable[Encoded]) -> None:
        """Append examples of the same task."""
        for one in encoded:
            for ids, segments in one.sequences:
                self._ids.extend(ids)
                self._segments.extend(segments)
                self._sequence_stops.append(len(self._ids))
            self._example_stops.append(len(self._sequence_stops) - 1)
            assert one.labels is not None, "only examples with labels are kept"
            kind = one.labels.dtype, one.labels.shape[1:], one.num_flags
            if not self._is_cut:
                self._label_type, self._label_shape, self._num_flags = kind
            assert kind == (self._label_type, self._label_shape, self._num_flags)
            self._labels += one.labels.tobytes()
            self._label_stops.append(len(self._labels))
            self._is_cut.append(one.is_cut)
            self._alignments.append(one.alignment)

    def count_tokens(self, special: Sequence[int], unknown: int) -> dict[str, int]:
        """Count the tokens of the texts, those that are unknown, and odd examples, by name."""
        ids = np.array(self._ids, dtype=np.int32)
        ends = np.concatenate([[0], np.cumsum(~np.isin(ids, special))])
        num_tokens = np.diff(ends[np.array(self._sequence_stops)[np.array(self._example_stops)]])
        return {
            "text_tokens": int(ends[-1]),
            "unknown_tokens": int((ids == unknown).sum()),
            "empty": int((num_tokens == 0).sum()),
            "truncated": sum(self._is_cut),
            "windowed": int((np.diff(self._example_stops) > 1).sum()),
        }

    def __len__(self) -> int:
        return len(self._is_cut)

    @overload
    def __getitem__(self, place: int) -> Encoded: ...

    @overload
    def __getitem__(self, place: slice) -> list[Encoded]: ...

    def __getitem__(self, place: int | slice) -> Encoded | list[Encoded]:
        if isinstance(place, slice):
            return [self[number] for number in range(len(self))[place]]
        number = range(len(self))[place]
        first, last = self._example_stops[number], self._example_stops[number + 1]
        content = self._labels[self._label_stops[number] : self._label_stops[number + 1]]
        return Encoded(
            sequences=tuple(
                TokenSequence(self._ids[start:stop].tolist(), self._segments[start:stop].tolist())
                for start, stop in pairwise(self._sequence_stops[first : last + 1])
            ),
            labels=np.frombuffer(content, self._label_type).reshape(-1, *self._label_shape),
            is_cut=bool(self._is_cut[number]),
            alignment=self._alignments[number],
            num_flags=self._num_flags,
        )


MAX_SCORES = 1 << 23  # logits in memory at a time: 32 MB, a few times that while decoding

Logits: TypeAlias = npt.NDArray[np.float32]
Compute = Callable[[PackedIds], Logits]  # a row for each sequence or token


def compute_logits(
    compute: Compute,
    encoded: Sequence[Encoded],
    *,
    scored: Scored,
    tokens_per_batch: int,
) -> list[Logits]:
    """Compute the logits of each example, `[rows, ...]`, the rows of its sequences in order."""
    sequences = [sequence for one in encoded for sequence in one.sequences]
    found: dict[int, Logits] = {}  # of each sequence
    for chosen in plan_batches([len(sequence.ids) for sequence in sequences], tokens_per_batch):
        ids = pack_sequences([sequences[index] for index in chosen])
        rows = compute(ids)
        sizes = ids.lengths if scored == "token" else (1,) * len(chosen)
        found.update(zip(chosen, np.split(rows, list(accumulate(sizes))[:-1]), strict=True))
    stops = accumulate((len(one.sequences) for one in encoded), initial=0)
    parts = ([found[index] for index in range(*ends)] for ends in pairwise(stops))
    return [own[0] if len(own) == 1 else np.concatenate(own) for own in parts]


def cut_by_scores(
    encoded: Sequence[Encoded],
    num_labels: int,
    *,
    scored: Scored,
) -> list[range]:
    """Split examples into ranges whose logits fit in memory; one range unless labels are very many.

    A range has at most `MAX_SCORES` logits, or a single example. `num_labels` is 0 if labels have
    no names; the logits of such a task are few, and all examples are one range.
    """
    parts, start, size = [], 0, 0
    for number, one in enumerate(encoded):
        added = num_labels * (one.num_tokens if scored == "token" else len(one.sequences))
        if number > start and size + added > MAX_SCORES:
            parts.append(range(start, number))
            start, size = number, 0
        size += added
    return [*parts, range(start, len(encoded))]
