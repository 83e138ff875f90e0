"""Texts and pairs of texts, from records or from a caller."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from bertkit.base.errors import InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.columns import find_column, take_text
from bertkit.tasks.settings import TextSettings

# Column names of first and second text in GLUE, related datasets and their copies on the Hub.
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
    """A text, or a pair that is encoded together."""

    text: str
    pair: str | None = None

    @property
    def num_chars(self) -> int:
        """Number of characters of both."""
        return len(self.text) + len(self.pair or "")

    def show(self) -> str:
        """Return the text or pair as one readable string."""
        return self.text if self.pair is None else f"{self.text} ||| {self.pair}"


def build_text_parser(settings: TextSettings, table: RecordTable) -> Callable[[Record], Texts]:
    """Build a function that reads text and pair from a record."""
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
    """Find the columns of text and pair: from the settings, the table's roles or usual names."""
    text, pair = settings.text_column, settings.pair_column
    if table.format == TEXT and pair is None:
        return TEXT, None  # one text per line, whatever the column was called in training
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
    """Set `pairs` if the training texts are pairs: the model then always requires pairs."""
    has_pairs = any(each.pair is not None for each in texts)
    return settings.model_copy(update={"pairs": True}) if has_pairs else settings


def read_texts(value: Any, place: str, settings: TextSettings) -> Texts:
    """Convert a caller's input, a text or a tuple of two."""
    if isinstance(value, str):
        if settings.pairs:
            raise InputError(
                f"{place}: the model reads pairs; give a tuple of two, or a second text with --pair"
            )
        return Texts(value)
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(t, str) for t in value):
        return Texts(*value)
    raise InputError(f"{place}: expected a text or a tuple of two, got {value!r:.80}")
