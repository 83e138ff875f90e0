"""Labels that no model has learned: read from a list, a file or rows, with descriptions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bertkit.base.errors import InputError
from bertkit.data.input_files import exists
from bertkit.data.tables.record import BrokenRowError
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import Table
from bertkit.tasks.classify import LABEL
from bertkit.tasks.columns import (
    TEXT,
    check_label,
    find_column,
    find_usual,
    spell_label,
    take_label,
    take_text,
)

DESCRIPTION = "description"


@dataclass(frozen=True)
class ZeroShot:
    """Labels that no model has learned, with the sentences that stand for them.

    Attributes:
        labels: names with a description each, which may be empty.
        template: the sentence that a label without one becomes; None for the usual one.
    """

    labels: Mapping[str, str]
    template: str | None = None

    def list_sentences(self, usual: str) -> list[str]:
        """Return the sentence of each label; `usual` is the template if none was given."""
        template = usual if self.template is None else self.template
        return [text or template.replace(LABEL, label) for label, text in self.labels.items()]


def read_zero_shot(given: Table | Mapping[str, str], template: str | None = None) -> ZeroShot:
    """Read labels, in their order.

    Args:
        given: names separated by commas; a file by name, or rows, with the columns label and
            description, of which the second may be missing; or a mapping of labels to descriptions.

    Raises:
        InputError: there are fewer than two, one is empty or repeated, or a row is broken.
    """
    if isinstance(given, str) and not exists(given):
        pairs = [(name, "") for name in given.split(",")]
    elif isinstance(given, Mapping) and all(isinstance(each, str) for each in given.values()):
        pairs = [(str(name), str(description)) for name, description in given.items()]
    else:
        pairs = list(read_rows(given))
    found = {spell_label(name): description.strip() for name, description in pairs}
    if len(found) < max(2, len(pairs)) or "" in found:
        shown = f"{given!r:.80}" if isinstance(given, str) else ", ".join(name for name, _ in pairs)
        raise InputError(
            "labels must be two or more different ones, separated by commas, or a file of them; got"
            f" {shown:.200}"
        )
    return ZeroShot(found, template)


def read_rows(given: Table) -> Iterator[tuple[str, str]]:
    """Yield the labels of a table with their descriptions."""
    table = open_records(given, split="labels")
    column = find_column(table, "label", None, ("label", "labels", TEXT))
    described = find_usual(table.columns, (DESCRIPTION,)) if table.columns else None
    try:
        for record in table.records():
            label = check_label(take_label(record, column), record, column, "label")
            yield label, take_text(record, described) if described else ""
    except BrokenRowError as error:
        raise InputError(str(error)) from None
    if table.report.num_broken:
        raise InputError(f"{table.report.first_broken[0]}; correct or remove it")
