"""The folders of GLUE: one per task, with train.tsv, dev.tsv and test.tsv.

Source: Wang et al. 2018, and the files of gluebenchmark.com. RTE and WNLI have the same columns.
"""

from pathlib import Path
from typing import NamedTuple

from bertkit.base.errors import MissingFileError, storage_errors
from bertkit.data.tables.decoder import show_names

FILES = {
    "train": ("train.tsv",),
    "dev": ("dev.tsv", "dev_matched.tsv"),
    "test": ("test.tsv", "test_matched.tsv"),
}


class Layout(NamedTuple):
    """The columns of a task.

    Attributes:
        text: the text, or the first of two.
        pair: the second text; None if there is only one.
        label: the label, which test.tsv lacks.
    """

    text: str
    pair: str | None
    label: str


# Pair tasks come before single-text tasks, whose columns may be a subset of theirs.
LAYOUTS = {
    "MRPC": Layout("#1 String", "#2 String", "Quality"),
    "QQP": Layout("question1", "question2", "is_duplicate"),
    "STS-B": Layout("sentence1", "sentence2", "score"),
    "MNLI": Layout("sentence1", "sentence2", "gold_label"),
    "QNLI": Layout("question", "sentence", "label"),
    "RTE": Layout("sentence1", "sentence2", "label"),
    "WNLI": Layout("sentence1", "sentence2", "label"),
    "SST-2": Layout("sentence", None, "label"),
    "CoLA": Layout("4", None, "2"),  # no header; in test.tsv `sentence`, as in SST-2
}
COLA_LABELS, COLA_MARKS = {"0", "1"}, {"", "*"}


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
