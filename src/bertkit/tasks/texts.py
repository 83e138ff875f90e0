"""Texts and pairs of texts, from records or from a caller."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from bertkit.base.errors import InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.batch import Encoded, TokenSequence
from bertkit.tasks.columns import take_text
from bertkit.tasks.labeled_table import find_text_columns
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import TaskExample
from bertkit.tokenization.encoding import cut_longest_first
from bertkit.tokenization.long_texts import MAX_WINDOWS
from bertkit.tokenization.tokenizer import Tokenizer

SettingsKind = TypeVar("SettingsKind", bound=TextSettings)


class Texts(NamedTuple):
    """A text, or a pair that is encoded together."""

    text: str
    pair: str | None = None

    def show(self) -> str:
        """Return the text or pair as one readable string."""
        return self.text if self.pair is None else f"{self.text} ||| {self.pair}"


class TextExample(TaskExample):
    """An example that is a text or a pair, with or without an answer."""

    __slots__ = ()
    texts: Texts

    @classmethod
    def from_value(cls, value: Any, place: str, settings: TextSettings) -> Self:
        """Build an example from a text, or a tuple of two."""
        return cls(texts=read_texts(value, place, settings), place=place)  # type: ignore[call-arg]

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The text, and --pair."""
        pair = [] if self.texts.pair is None else [("--pair", self.texts.pair)]
        return [("", self.texts.text), *pair]

    @property
    def num_chars(self) -> int:
        """Number of characters of text and pair."""
        return len(self.texts.text) + len(self.texts.pair or "")

    @property
    def shown(self) -> str:
        """The text or the pair."""
        return self.texts.show()


def build_text_parser(settings: TextSettings, table: RecordTable) -> Callable[[Record], Texts]:
    """Build a function that reads text and pair from a record."""
    text, pair = find_text_columns(settings, table)
    if settings.pairs and pair is None:
        raise InputError(
            f"{table.name} has one text a row where pairs are read; name the columns of both with"
            " --text-column and --pair-column, or give a file that has them"
        )
    if settings.pairs is False and pair is not None:
        raise InputError(
            f"{table.name} has pairs of texts, in {text} and {pair}, where single texts are read;"
            " name the column of the text alone with --text-column"
        )

    def parse(record: Record) -> Texts:
        second = None if pair is None else take_text(record, pair)
        return Texts(take_text(record, text), second)

    return parse


def learn_pairs(settings: SettingsKind, texts: Iterable[Texts]) -> SettingsKind:
    """Set `pairs` as the training texts are: the model then always requires or refuses them."""
    if settings.pairs:
        return settings
    has_pairs = any(each.pair is not None for each in texts)
    return settings.model_copy(update={"pairs": has_pairs})


def read_texts(value: Any, place: str, settings: TextSettings) -> Texts:
    """Convert a caller's input, a text or a tuple of two: whichever the model reads.

    A model of another tool doesn't say, and reads both.
    """
    if isinstance(value, str):
        if settings.pairs:
            raise InputError(
                f"{place}: the model reads pairs; give a tuple of two, or a second text with --pair"
            )
        return Texts(value)
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(t, str) for t in value):
        if settings.pairs is False:
            raise InputError(
                f"{place}: the model reads single texts, and this is a pair; give one text, without"
                " --pair"
            )
        return Texts(*value)
    raise InputError(f"{place}: expected a text or a tuple of two, got {value!r:.80}")


Ids = list[int]


def encode_texts(
    texts: Sequence[Texts], settings: TextSettings, tokenizer: Tokenizer
) -> list[Encoded]:
    """Encode texts and pairs, as `[CLS] A [SEP]`; long ones are cut or windowed."""
    firsts = tokenizer.piece_ids([each.text for each in texts])
    seconds = iter(tokenizer.piece_ids([each.pair for each in texts if each.pair is not None]))
    found = []
    for each, first in zip(texts, firsts, strict=True):
        parts = [first] if each.pair is None else [first, next(seconds)]
        room = settings.max_length - tokenizer.num_special(len(parts))
        windows, is_cut = _choose_windows(parts, settings, room)
        sequences = tuple(TokenSequence(*tokenizer.join(*window)) for window in windows)
        found.append(Encoded(sequences, is_cut=is_cut))
    return found


def _choose_windows(
    parts: list[Ids], settings: TextSettings, budget: int
) -> tuple[list[list[Ids]], bool]:
    """Choose the parts of a text or pair to encode, and tell whether tokens were left out."""
    if sum(map(len, parts)) <= budget:
        return [parts], False
    if settings.long_texts == "truncate":
        sizes = cut_longest_first(len(parts[0]), sum(map(len, parts[1:])), budget)
        return [[part[:size] for part, size in zip(parts, sizes, strict=False)]], True
    # Each window of the longer text repeats the other one, cut to half the budget.
    longer = max(range(len(parts)), key=lambda place: len(parts[place]))
    others = [part[: budget // 2] for place, part in enumerate(parts) if place != longer]
    room = budget - sum(map(len, others))
    pieces = settings.cutter(room).cut(len(parts[longer]))
    windows = []
    for piece in pieces[:MAX_WINDOWS]:
        windows.append([*others])
        windows[-1].insert(longer, parts[longer][piece.start : piece.stop])
    is_short = sum(map(len, others)) < sum(map(len, parts)) - len(parts[longer])
    return windows, is_short or len(pieces) > MAX_WINDOWS
