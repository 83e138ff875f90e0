"""Holds out the end of the text where the draw held out no document.

Few documents, or a small share, often leave nothing to evaluate on, and pre-training needs
something. The text that is held out here is a pure function of the shards.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import InputError
from bertkit.base.wording import pluralize
from bertkit.data.readers.document import ReadReport
from bertkit.data.shards import Shard, ShardRecord, Split
from bertkit.recipes.prepare.work_unit import write_shard

MANY_DOCUMENTS = 8  # of so many, whole ones are held out; of fewer, the end of each
MIN_DOCUMENTS = 2  # random next sentences come from another document


def hold_out_end(
    folder: Path, shards: Sequence[ShardRecord], share: float, report: ReadReport
) -> tuple[list[ShardRecord], NDArray[np.uint64]]:
    """Replace the shard with most sentences by two: one to train on, and one that is held out.

    Of many documents, the last ones are held out; of few, the last sentences of each.

    Args:
        folder: the output of `prepare`.
        shards: all shards, none of them held out; the files of the one that is replaced stay.
        share: of the documents or sentences to hold out; at least two documents, or one sentence
            of each.
        report: gets a note.

    Returns:
        The new list of shards, and how often each token of the vocabulary occurs in what is held
        out, up to the largest of its tokens.

    Raises:
        InputError: the text has too few sentences.
    """
    record = max(shards, key=lambda shard: shard.counts.sentences)
    shard = Shard.open(folder, record)
    documents = shard.document_offsets.astype(np.int64)
    ends = find_ends(documents, share)
    if not (ends < documents[1:]).any():
        raise InputError(
            f"the input has {pluralize(int(documents[-1]), 'sentence')} in"
            f" {pluralize(len(ends), 'document')}, which is too little to train on some and to"
            " evaluate on others; add text, or name some with --held-out-inputs"
        )
    note = "last-documents" if ends[-1] == documents[-2] else "cut-documents"
    report.add(note, record.name, int((ends < documents[1:]).sum()))
    number = 1 + max(int(each.name.split("-")[-2]) for each in shards)
    parts: dict[Split, tuple[NDArray[np.int64], NDArray[np.int64]]] = {
        "train": (documents[:-1], ends),
        "held-out": (ends, documents[1:]),
    }
    made = [
        _copy_ranges(folder, f"{split}-{number:05d}-000", split, shard, *ranges)
        for split, ranges in parts.items()
    ]
    held_out = Shard.open(folder, made[1])
    counts = np.bincount(held_out.tokens(0, held_out.num_tokens)).astype(np.uint64)
    return [*(each for each in shards if each is not record), *made], counts


def find_ends(documents: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return for each document the first of its sentences that is held out, or its end.

    Args:
        documents: the first sentence of each document, and the number of sentences.
        share: of documents or sentences.
    """
    firsts, lasts = documents[:-1], documents[1:]
    lengths, num_documents = lasts - firsts, len(lasts)
    if num_documents >= MANY_DOCUMENTS or lengths.max() == 1:
        num_held_out = max(MIN_DOCUMENTS, round(share * num_documents))
        num_trained = max(1, num_documents - num_held_out)
        return np.where(np.arange(num_documents) < num_trained, lasts, firsts)
    num_cut = np.maximum(1, np.rint(share * lengths).astype(np.int64))
    return np.asarray(lasts - np.minimum(num_cut, lengths - 1))


def _copy_ranges(
    folder: Path,
    name: str,
    split: Split,
    shard: Shard,
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> ShardRecord:
    """Write a shard with a range of sentences of each document; empty ranges are left out."""
    is_kept = ends > firsts
    firsts, ends = firsts[is_kept], ends[is_kept]
    starts = shard.sentence_offsets.astype(np.int64)
    pairs = list(zip(firsts.tolist(), ends.tolist(), strict=True))
    tokens = [shard.tokens(int(starts[first]), int(starts[end])) for first, end in pairs]
    lengths = np.concatenate([np.diff(starts[first : end + 1]) for first, end in pairs])
    return write_shard(
        folder,
        name,
        split,
        tokens=np.concatenate(tokens),
        sentences=np.append(0, lengths.cumsum()).astype(np.uint64),
        documents=np.append(0, (ends - firsts).cumsum()).astype(np.uint64),
    )
