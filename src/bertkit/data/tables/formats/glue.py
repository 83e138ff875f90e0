"""The folders of GLUE tasks: which file has a split, and what its columns are."""

from pathlib import Path
from typing import NamedTuple

from bertkit.base.errors import MissingFileError, storage_errors
from bertkit.data.tables.decoder import show_names

FILES = {
    "train": ("train.tsv",),
    "dev": ("dev.tsv", "dev_matched.tsv"),
    "test": ("test.tsv", "test_matched.tsv"),
}
COLA_LABELS, COLA_MARKS = {"0", "1"}, {"", "*"}


class SeparatedLayout(NamedTuple):
    """The columns of a task."""

    text: str  # the text, or the first of two
    pair: str | None  # None if there is only one
    label: str  # which test.tsv lacks


# Pair tasks come before single-text tasks, whose columns may be a subset of theirs.
LAYOUTS = {
    "MRPC": SeparatedLayout("#1 String", "#2 String", "Quality"),
    "QQP": SeparatedLayout("question1", "question2", "is_duplicate"),
    "STS-B": SeparatedLayout("sentence1", "sentence2", "score"),
    "MNLI": SeparatedLayout("sentence1", "sentence2", "gold_label"),
    "QNLI": SeparatedLayout("question", "sentence", "label"),
    "RTE": SeparatedLayout("sentence1", "sentence2", "label"),
    "WNLI": SeparatedLayout("sentence1", "sentence2", "label"),
    "SST-2": SeparatedLayout("sentence", None, "label"),
    "CoLA": SeparatedLayout("4", None, "2"),  # no header; in test.tsv `sentence`, as in SST-2
}


def find_file(folder: Path, split: str) -> Path:
    """Return a task's file of a split: train, dev, test, or any other name without extension."""
    with storage_errors(folder, "read"):
        there = sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".tsv")
    for name in FILES.get(split, (f"{split}.tsv",)):
        if name in there:
            return folder / name
    raise MissingFileError(
        f"{folder} has no {split}.tsv, which the folders of GLUE have; it has"
        f" {show_names(there) or 'no TSV file'}; name a file"
    )


def lacks_header(first_row: tuple[str, ...]) -> bool:
    """Whether a file's first row is data, as in CoLA: source, label, mark and sentence."""
    match first_row:
        case (_, label, mark, _):
            return label in COLA_LABELS and mark in COLA_MARKS
    return False


def find_roles(columns: tuple[str, ...]) -> dict[str, str]:
    """Return the columns by role (`text`, `pair`, `label`); empty if no known task matches."""
    for needs_label in (True, False):
        for layout in LAYOUTS.values():
            roles = {role: name for role, name in layout._asdict().items() if name is not None}
            if not needs_label:
                del roles["label"]
            if set(roles.values()) <= set(columns):
                return roles
    return {}
