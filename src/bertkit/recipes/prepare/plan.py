"""The plan of `prepare`: its units of work, and what is held out if no whole document was.

Few documents, or a small share, often leave nothing to evaluate on. The text that is held out here
is a pure function of the shards.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, field_validator

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.earlier_settings import update_settings
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    MissingFileError,
    ResumeError,
    StorageError,
    pluralize,
    storage_errors,
)
from bertkit.base.files import remove_folder
from bertkit.base.output import list_names
from bertkit.base.progress import announce
from bertkit.base.settings import list_flag_differences
from bertkit.data.input_files import STANDARD_INPUT_NAME, look_at
from bertkit.data.problems import ReadReport
from bertkit.data.shards import (
    MANIFEST,
    PLAN,
    SHARDS_FOLDER,
    TOKEN_COUNTS,
    TOKENIZER_FOLDER,
    Shard,
    ShardRecord,
    ShardSet,
    Split,
)
from bertkit.data.sources import TextSource
from bertkit.recipes.prepare.work_unit import UNITS_FOLDER, write_shard
from bertkit.recipes.settings import PrepareSettings

MANY_DOCUMENTS = 8  # of so many, whole ones are held out; of fewer, the end of each
MIN_DOCUMENTS = 2  # random next sentences come from another document


def hold_out_end(
    folder: Path, shards: Sequence[ShardRecord], share: float, report: ReadReport
) -> tuple[list[ShardRecord], NDArray[np.uint64]]:
    """Split the largest shard, hold out its end, and return the shards and its token counts."""
    record = max(shards, key=lambda shard: shard.counts.sentences)
    shard = Shard.open(folder, record)
    documents = shard.document_offsets.astype(np.int64)
    ends = find_ends(documents, share)
    if not (ends < documents[1:]).any():
        raise InputError(
            f"the input has {pluralize(int(documents[-1]), 'sentence')} in"
            f" {pluralize(len(ends), 'document')}, which is too little to train on some and to"
            " evaluate on others; add text, or name some with --dev"
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
    """Return for each document the first of its sentences that is held out, or its end."""
    # `documents` has the first sentence of each document, then the number of sentences.
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


UNIT_BYTES = 16 << 20
MAX_SHOWN_CHANGES = 3
RESTART_ADVICE = "start again with another --output or with --overwrite"


class PlannedSource(BaseModel):
    """A source's state when planned; another size, time or version means changed text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    size_bytes: int | None
    changed_ns: int | None
    version: str | None = None  # of an object in a bucket
    sha256: str | None = None
    is_held_out: bool = False


class PreparationPlan(ChecksummedModel):
    """Everything that the output depends on."""

    description: ClassVar[str] = "a plan of `bertkit prepare`"
    limit_bytes: ClassVar[int] = 1 << 30

    settings: PrepareSettings
    tokenizer_fingerprint: str
    sources: list[PlannedSource]

    _update_settings = field_validator("settings", mode="before")(
        lambda given: update_settings(given) if isinstance(given, dict) else given
    )


def make_plan(
    sources: Sequence[TextSource], settings: PrepareSettings, tokenizer_fingerprint: str
) -> PreparationPlan:
    """Build the plan."""
    planned = []
    for source in sources:
        changed: int | str | None = None
        with suppress(MissingFileError, StorageError):  # reading it reports and counts the error
            changed = None if source.path is None else look_at(source.path).changed
        planned.append(
            PlannedSource(
                name=source.name,
                size_bytes=source.size_bytes,
                changed_ns=changed if isinstance(changed, int) else None,
                version=changed if isinstance(changed, str) else None,
                sha256=source.sha256,
                is_held_out=source.is_held_out,
            )
        )
    return PreparationPlan(
        settings=settings, tokenizer_fingerprint=tokenizer_fingerprint, sources=planned
    )


def group_sources(sources: Sequence[TextSource]) -> list[list[TextSource]]:
    """Group files of one split, in order, into units of about 16 MiB; larger files are alone."""
    units: list[list[TextSource]] = []
    size = 0
    for source in sources:
        source_size = UNIT_BYTES if source.size_bytes is None else source.size_bytes
        is_full = size + source_size > UNIT_BYTES
        if not units or is_full or source.is_held_out != units[-1][-1].is_held_out:
            units.append([])
            size = 0
        units[-1].append(source)
        size += source_size
    return units


def check_folder(output: Path) -> None:
    """Raise `ResumeError` unless `output` is new, has only empty folders, or is of `prepare`."""
    with storage_errors(output, "read"):
        if (output / PLAN).exists() or not output.exists():
            return
        names = list_names(output)
        is_new = output.is_dir() and names <= {SHARDS_FOLDER, UNITS_FOLDER}
        if not is_new or any(list_names(output / name) for name in names):
            raise ResumeError(f"{output} holds other files; choose another --output")


def remove_shards(output: Path) -> None:
    """Remove what `prepare` wrote; the plan, by which it knows its folder, goes last."""
    for name in (MANIFEST, TOKEN_COUNTS, UNITS_FOLDER, SHARDS_FOLDER, TOKENIZER_FOLDER, PLAN):
        remove_folder(output / name)


def is_finished(output: Path, plan: PreparationPlan) -> bool:
    """Whether `output` holds undamaged shards of this plan; raises if it has another plan."""
    if differences := list_changes(output, plan):
        advice = "use the same again, choose another --output, or replace them with --overwrite"
        if reads_standard_input(plan.sources):
            advice = RESTART_ADVICE
        raise ResumeError(
            f"{output} was started with different inputs or settings ({'; '.join(differences)});"
            f" {advice}"
        )
    if not (output / PLAN).exists() or not (output / MANIFEST).exists():
        return False
    try:
        ShardSet.open(output).load_tokenizer()
    except (MissingFileError, DamagedFileError, InputError) as error:
        announce(f"Preparing {output} again: {error}")
        return False
    return True


def reads_standard_input(sources: Sequence[PlannedSource | TextSource]) -> bool:
    """Whether one of the sources is standard input, which can't be read twice."""
    return any(source.name == STANDARD_INPUT_NAME for source in sources)


def list_changes(output: Path, now: PreparationPlan) -> list[str]:
    """List the differences from the plan of `output`, for messages; none if it is new."""
    if not (output / PLAN).exists():
        return []
    before = PreparationPlan.load(output / PLAN)
    changes = list_flag_differences(before.settings.model_dump(), now.settings.model_dump())
    if before.tokenizer_fingerprint != now.tokenizer_fingerprint:
        changes.append("a different tokenizer")
    if before.sources == now.sources:
        if reads_standard_input(now.sources):
            changes.append("standard input, which can't be read again")
        return changes
    old, new = ({source.name: source for source in plan.sources} for plan in (before, now))
    named = [f"{name} is new" for name in new if name not in old]
    named += [f"{name} is missing" for name in old if name not in new]
    named += [f"{name} has changed" for name in new if name in old and old[name] != new[name]]
    more = [f"{len(named) - MAX_SHOWN_CHANGES:,} more"] if len(named) > MAX_SHOWN_CHANGES else []
    return changes + (named[:MAX_SHOWN_CHANGES] + more or ["inputs in a different order"])
