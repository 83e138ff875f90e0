"""A text or a pair of texts: of a record, or as a caller gives it."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from bertkit.base.errors import InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.columns import find_column, take_text
from bertkit.tasks.settings import TextSettings

# First and second text, as the files of GLUE, its relatives and the Hub's copies call them.
USUAL_PAIRS = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text1", "text2"),
)
TEXT = "text"
USUAL_TEXT = (TEXT, "sentence", *(first for first, _ in USUAL_PAIRS))

SettingsKind = TypeVar("SettingsKind", bound=TextSettings)


class Texts(NamedTuple):
    """A text, or two that are read together."""

    text: str
    pair: str | None = None

    @property
    def num_chars(self) -> int:
        """Characters of both."""
        return len(self.text) + len(self.pair or "")

    def show(self) -> str:
        """Both, for people."""
        return self.text if self.pair is None else f"{self.text} ||| {self.pair}"


def build_text_parser(settings: TextSettings, table: RecordTable) -> Callable[[Record], Texts]:
    """Look for text and pair in their columns."""
    text, pair = find_text_columns(settings, table)
    if settings.pairs and pair is None:
        raise InputError(
            f"{table.name} has one text a row where pairs are read; name the columns of both with"
            " --text-column and --pair-column, or give a file that has them"
        )

    def parse(record: Record) -> Texts:
        second = None if pair is None else take_text(record, pair)
        return Texts(take_text(record, text), second)

    return parse


def find_text_columns(settings: TextSettings, table: RecordTable) -> tuple[str, str | None]:
    """Columns of text and pair: as they are named, as the layout has them, or as is usual."""
    text, pair = settings.text_column, settings.pair_column
    if table.format == TEXT and pair is None:
        return TEXT, None  # a text a line is that, whatever the column was called in training
    if text is None and pair is None and not table.roles:
        columns = set(table.columns or ())
        for names in USUAL_PAIRS:
            if columns.issuperset(names) and "text" not in columns:
                return names
    has_pair = pair is not None or (text is None and "pair" in table.roles)
    return (
        find_column(table, "text", text, USUAL_TEXT),
        find_column(table, "pair", pair) if has_pair else None,
    )


def learn_pairs(settings: SettingsKind, texts: Iterable[Texts]) -> SettingsKind:
    """The settings of a model for what it learns from: where that is pairs, it asks for pairs."""
    has_pairs = any(each.pair is not None for each in texts)
    return settings.model_copy(update={"pairs": True}) if has_pairs else settings


def read_texts(value: Any, place: str, settings: TextSettings) -> Texts:
    """What a caller gave: a text, or a tuple of two."""
    if isinstance(value, str):
        if settings.pairs:
            raise InputError(
                f"{place}: the model reads pairs; give a tuple of two, or a second text with --pair"
            )
        return Texts(value)
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(t, str) for t in value):
        return Texts(*value)
    raise InputError(f"{place}: expected a text or a tuple of two, got {value!r:.80}")
