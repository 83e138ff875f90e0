"""Encoded examples in flat arrays: 5 bytes per token, where Python lists take 16 or more."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from bertkit.tasks.batch import Encoded, TokenSequence


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
            self._add_labels(one)
            self._is_cut.append(one.is_cut)
            self._alignments.append(one.alignment)

    def _add_labels(self, one: Encoded) -> None:
        assert one.labels is not None, "only examples with labels are kept"
        if not self._is_cut:
            self._label_type, self._label_shape = one.labels.dtype, one.labels.shape[1:]
            self._num_flags = one.num_flags
        assert (one.labels.dtype, one.labels.shape[1:]) == (self._label_type, self._label_shape)
        assert one.num_flags == self._num_flags
        self._labels += one.labels.tobytes()
        self._label_stops.append(len(self._labels))

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
        return Encoded(
            sequences=tuple(self._read_sequence(index) for index in range(first, last)),
            labels=self._read_labels(number),
            is_cut=bool(self._is_cut[number]),
            alignment=self._alignments[number],
            num_flags=self._num_flags,
        )

    def _read_sequence(self, index: int) -> TokenSequence:
        start, stop = self._sequence_stops[index], self._sequence_stops[index + 1]
        return TokenSequence(self._ids[start:stop].tolist(), self._segments[start:stop].tolist())

    def _read_labels(self, number: int) -> npt.NDArray[Any]:
        content = self._labels[self._label_stops[number] : self._label_stops[number + 1]]
        return np.frombuffer(content, self._label_type).reshape(-1, *self._label_shape)
