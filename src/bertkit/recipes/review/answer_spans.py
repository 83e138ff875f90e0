"""Spans of answers as a review reads them: where a given one lies, and one that is planted."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertkit.recipes.review.label_errors import Flags
from bertkit.tasks.answer.scoring import Windows
from bertkit.tasks.batch import Encoded


def find_given(encoded: Encoded) -> tuple[int, int]:
    """Return start and stop, in characters, of the answer given; equal if there is none."""
    windows: Windows = encoded.alignment
    for part, labels in zip(windows.parts, encoded.label_rows, strict=True):
        if labels[1] >= windows.num_before:
            first, last = (part.start + labels - windows.num_before).tolist()
            return int(windows.offsets[first, 0]), int(windows.offsets[last, 1])
    return 0, 0


def plant_spans(encoded: Sequence[Encoded], share: float, seed: int) -> tuple[list[Encoded], Flags]:
    """Move the answers of a share of the rows to other places of the same window.

    Returns:
        the rows, and which have another answer; not all of the share, where there is no place.
    """
    generator = np.random.default_rng(seed)
    rows, is_planted = list(encoded), np.zeros(len(encoded), np.bool_)
    for number in np.sort(generator.permutation(len(rows))[: round(share * len(rows))]).tolist():
        labels, windows = rows[number].label_rows.copy(), rows[number].alignment
        for span, part in zip(labels, windows.parts, strict=True):
            length = span[1] - span[0] + 1
            starts = windows.num_before + np.arange(len(part) - length + 1)
            places = starts[np.abs(starts - span[0]) >= length]  # without overlap
            if span[0] >= windows.num_before and len(places):
                span += generator.choice(places) - span[0]
                is_planted[number] = True
        rows[number] = replace(rows[number], labels=labels)
    return rows, is_planted
