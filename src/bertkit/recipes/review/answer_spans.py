"""Spans of answers as a review reads them: where a given one lies, and one that is planted."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertkit.recipes.review.label_errors import Flags, Ids
from bertkit.tasks.answer.scoring import Answer, Windows
from bertkit.tasks.batch import Encoded


def find_given(encoded: Encoded) -> tuple[int, int]:
    """Return start and stop, in characters, of the answer given; equal if there is none."""
    windows: Windows = encoded.alignment
    for part, (first, last) in zip(windows.parts, encoded.label_rows.tolist(), strict=True):
        if last >= windows.num_before:
            inside = windows.offsets[part.start : part.stop]
            start, stop = (
                inside[first - windows.num_before, 0],
                inside[last - windows.num_before, 1],
            )
            return int(start), int(stop)
    return 0, 0


def find_predicted(answer: Answer) -> tuple[int, int]:
    """Return start and stop of a predicted answer; equal for "no answer"."""
    return answer.start or 0, answer.stop or 0


def plant_spans(encoded: Sequence[Encoded], share: float, seed: int) -> tuple[list[Encoded], Flags]:
    """Move the answers of a share of the rows to other places of the same window.

    Returns:
        the rows, and which have another answer; not all of the share, where there is no place.
    """
    generator = np.random.default_rng(seed)
    rows, is_planted = list(encoded), np.zeros(len(encoded), np.bool_)
    for number in np.sort(generator.permutation(len(rows))[: round(share * len(rows))]).tolist():
        labels = rows[number].label_rows.copy()
        for window, part in enumerate(rows[number].alignment.parts):
            places = _find_places(labels[window], rows[number].alignment.num_before, len(part))
            if len(places):
                labels[window] += generator.choice(places) - labels[window, 0]
                is_planted[number] = True
        rows[number] = replace(rows[number], labels=labels)
    return rows, is_planted


def _find_places(span: Ids, before: int, length: int) -> Ids:
    """Return where in a window a span as long could start without overlapping it."""
    if span[0] < before:
        return np.array([], np.int64)
    num_tokens = int(span[1] - span[0]) + 1
    starts = np.arange(before, before + length - num_tokens + 1)
    places: Ids = starts[np.abs(starts - span[0]) >= num_tokens]
    return places
