"""One look at a table: which columns are the text and the label, without loading torch or a model.

A column that isn't named is the one with a usual name, or else the only one whose cells look like
it, as a note in the table's report says. If several do, one error names them all.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from pathlib import Path

from bertkit.base.errors import InputError
from bertkit.data.input_files import STANDARD_INPUT
from bertkit.data.tables.decoder import show_names
from bertkit.data.tables.formats.separated import lacks_names
from bertkit.data.tables.profiles import ColumnProfile, profile_columns
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings
from bertkit.reports.text import show
from bertkit.tasks.columns import TEXT, find_column, find_usual
from bertkit.tasks.paired_rows import PairedColumns
from bertkit.tasks.settings import USUAL_PAIRS, PairedSettings, TaskSettings, TextSettings

LABEL = "label"
# Words of a cell on average, from which a column may have the texts: of sentences, of queries.
LEAST_WORDS = (3.0, 1.5)
MAX_SHOWN = 5  # columns that could be one
# Words of a name that say that the column has labels, and columns that `bertkit review` adds.
LABEL_NAMES = {
    *("label", "labels", "class", "klasse", "classe", "category", "kategorie", "categoria"),
    *("sentiment", "topic", "thema", "intent", "tag", "tags", "target"),
}
FINDINGS = ("looks_wrong", "likely", "probability", "suspicion", "notes")
KINDS = {TEXT: "of texts", LABEL: "of few values that repeat"}
NUMBERS = "of numbers"  # those that are learned

Candidates = Mapping[str, list[ColumnProfile]]  # by role, text or label


def open_training_tables(
    given: Mapping[str, Table | RecordTable], settings: RecordSettings, task: TaskSettings
) -> list[RecordTable]:
    """Open the tables of a training, by their flags, and check their columns.

    Columns that the first shows by its cells are those of the others, too, if they have them.
    """
    tables = list[RecordTable]()
    for flag, source in given.items():
        if isinstance(source, str | Path) and str(source) == STANDARD_INPUT:
            raise InputError(
                f"--{flag} can't be standard input, because a resumed run reads it again; write it"
                " to a file first"
            )
        table = open_records(source, settings, split=flag)
        for other in tables[:1]:
            table.find_as(other)
        check_columns(task, table, needs_answer=True)
        check_labels(task, table)
        tables.append(table)
    return tables


def check_labels(settings: TaskSettings, table: RecordTable) -> None:
    """Raise an error if labels are lists, or too many rows of a small table have none."""
    records, report = table.look(), deepcopy(table.report)
    is_one = isinstance(settings, TextSettings) and settings.separator is None
    if is_one and table.columns and LABEL in settings.usual_columns:
        column = _find(settings, table, LABEL)
        values = [record.values.get(column) for record in records]
        if values and all(isinstance(value, list) for value in values):
            error = InputError(
                f"{table.name}: {show(column)} has lists of labels, which --multi-label reads"
            )
            named = ("--label-column", column) if LABEL in table.found else ()
            error.flags = ((*named, "--multi-label"),)
            raise error
        for record, value in zip(records, values, strict=True):
            if str(value).strip() == "":
                report.add_broken(f"{record.place} has an empty label in {column}")
    if table.is_known and table.columns:
        table.check_broken(report)


def find_columns(settings: TaskSettings, table: RecordTable, *, needs_answer: bool) -> None:
    """Find the columns that have no usual name and aren't named, by their cells.

    They are then known to the table, whose report says so.

    Raises:
        InputError: several columns could be the text or the label, or none; `flags` choose.
    """
    roles = [role for role in settings.usual_columns if role != LABEL or needs_answer]
    missing = [role for role in roles if _is_missing(settings, table, role)]
    if not isinstance(settings, TextSettings) or not _can_look(settings, table, missing):
        return
    taken = {_find(settings, table, role) for role in roles if role not in missing}
    found = _find_candidates(settings, table, missing, taken)
    clear = {role: each[0] for role, each in found.items() if len(each) == 1}
    if len(clear) < len(missing):
        raise _describe_unclear(settings, table, found)
    shown = [
        f"the {role} is {one.describe()}, the only column {_describe_kind(settings, role)}"
        f"{' with such a name' if role == LABEL and _says_label(one) else ''}"
        for role, one in clear.items()
    ]
    flags = " and ".join(f"--{role}-column" for role in clear)
    names = "name others" if len(clear) > 1 else "names another"
    table.report.notes.append(f"{'; '.join(shown)}; {flags} {names}")
    table.found |= {role: one.name for role, one in clear.items()}


def check_columns(settings: TaskSettings, table: RecordTable, *, needs_answer: bool) -> None:
    """Find the columns of a task, as when its rows are read; errors as in `find_columns`."""
    if isinstance(settings, PairedSettings):
        PairedColumns.find(settings, table, needs_answer=needs_answer)
        return
    find_columns(settings, table, needs_answer=needs_answer)
    if isinstance(settings, TextSettings):
        find_text_columns(settings, table)
    is_known = table.columns is not None and table.format not in {"conll", TEXT}
    for role in settings.usual_columns if needs_answer and is_known else ():
        _find(settings, table, role)


def find_text_columns(settings: TextSettings, table: RecordTable) -> tuple[str, str | None]:
    """Find the columns of text and pair: from the settings, the table's roles or usual names."""
    text, pair = settings.text_column, settings.pair_column
    if table.format == TEXT and pair is None:
        return TEXT, None  # one text per line, whatever the column was called in training
    if text is None and pair is None and not table.roles:
        columns = set(table.columns or ())
        for names in USUAL_PAIRS:
            if columns.issuperset(names) and (TEXT in names or TEXT not in columns):
                return names
    has_pair = pair is not None or (text is None and "pair" in table.roles)
    first = _find(settings, table, TEXT)
    return first, find_column(table, "pair", pair) if has_pair else None


def _find(settings: TaskSettings, table: RecordTable, role: str) -> str:
    """Find the column of a role, as `find_column`."""
    named = getattr(settings, f"{role}_column")
    return find_column(table, role, named, settings.usual_columns[role])


def _is_missing(settings: TaskSettings, table: RecordTable, role: str) -> bool:
    """Whether the column of a role is neither named nor has a usual name."""
    if getattr(settings, f"{role}_column") is not None or role in {**table.roles, **table.found}:
        return False
    return find_usual(table.columns, settings.usual_columns[role]) is None


def _can_look(settings: TextSettings, table: RecordTable, missing: Collection[str]) -> bool:
    """Whether missing columns can be found by their cells.

    Not in plain text, in pairs, and where the first row is data.
    """
    columns = table.columns or ()
    is_table = len(columns) > 1 and table.format != TEXT and not lacks_names(columns)
    is_single = settings.pair_column is None and not settings.pairs
    return bool(missing) and is_table and is_single


def _find_candidates(
    settings: TextSettings, table: RecordTable, missing: Collection[str], taken: Collection[str]
) -> Candidates:
    """Find the columns that can have each missing role; those with the longest texts first."""
    others = {*taken, *(FINDINGS if {*FINDINGS} <= {*(table.columns or ())} else ())}
    columns = [name for name in table.columns or () if name not in others]
    profiles = profile_columns(table.look(), columns, settings.separator)
    has_numbers = settings.learns_numbers
    labels = [one for one in profiles if (one.is_number if has_numbers else one.is_label)]
    labels = list(filter(_says_label, labels)) or labels
    is_headless = any(one.name in one.cells for one in labels) and table.settings.header
    found = {TEXT: _find_texts(profiles), LABEL: labels}
    return {role: [] if is_headless else found[role] for role in missing}


def _says_label(profile: ColumnProfile) -> bool:
    return not LABEL_NAMES.isdisjoint(re.split(r"[\W_]+", profile.name.casefold()))


def _find_texts(profiles: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Find the columns of sentences, or else of a few words, by their number of words."""
    others = [one for one in profiles if not one.is_label]
    for least in LEAST_WORDS:
        if found := [one for one in others if one.num_words >= least]:
            return sorted(found, key=lambda one: -one.num_words)
    return []


def _describe_unclear(settings: TextSettings, table: RecordTable, found: Candidates) -> InputError:
    """Return the error that says what each missing column could be, and how to name it."""
    if not any(found.values()):
        _find(settings, table, next(iter(found)))  # the error that lists all columns
    parts, flags = list[str](), [list[str]()]
    for role, candidates in found.items():
        if not candidates:
            parts.append(f"no column {_describe_kind(settings, role)} could be the {role}")
            continue
        names = " or ".join(one.describe() for one in candidates[:MAX_SHOWN])
        parts.append(f"the {role} {'is' if len(candidates) == 1 else 'could be'} {names}")
        if len(candidates) > 1:  # texts by their length, and each that could be the label
            shown = candidates[: MAX_SHOWN if role == LABEL else 1]
            flags = [[*one, f"--{role}-column", each.name] for one in flags for each in shown]
    wanted = " and ".join(f"--{role}-column" for role, each in found.items() if len(each) != 1)
    columns = show_names(table.columns or ())
    error = InputError(f"{table.name}: {'; '.join(parts)}; choose with {wanted} of {columns}")
    error.flags = flags if all(found.values()) else ()
    return error


def _describe_kind(settings: TextSettings, role: str) -> str:
    return NUMBERS if role == LABEL and settings.learns_numbers else KINDS[role]
