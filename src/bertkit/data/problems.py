"""Reports of data problems: each is counted, the first ones with their place; and of [UNK]."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import announce
from bertkit.data.encodings import DecodingCounts
from bertkit.reports.text import format_percent, make_legible
from bertkit.tokenization.settings import MAX_WORD_CHARS

MAX_PLACES = 5
MAX_FEW, LEAST_TIMES_FEW = 5, 10  # broken rows that always may be, and of how many times as many
WARNING = "WARNING: "
WARNED_SHARE = 0.1  # of a set's tokens: more [UNK] than that is a warning
UNKNOWN_TEXT_ADVICE = "use a model or tokenizer for this language"
FAULTS = {
    "unreadable-file": "files that can't be read: skipped",
    "truncated": "compressed files that end too early: what came before is kept",
    "damaged": "damaged files: what came before the damage is kept",
    "not-text": "files that aren't text: skipped",
    "invalid-utf8": "lines or records with invalid UTF-8: replaced by U+FFFD",
    "nul": "lines or records with NUL characters: removed",
    "long-line": "lines over 1 MiB: cut at white space",
    "long-record": "records over 16 MiB, or pages over 4 Mi characters: skipped",
    "broken-json": "rows that aren't a JSON object, or lack cells or have too many: skipped",
    "missing-field": "records without the field: skipped",
    "wrong-type": "records whose field isn't a string: skipped",
    "broken-xml": "files with broken XML: what came before is kept",
    "broken-page": "pages whose wiki markup can't be parsed: skipped",
}
NOTES = {
    "empty-file": "files without text: skipped",
    "repeated-file": "files found again under another name: read once",
    "empty-document": "documents without a token: left out",
    "one-sentence": "documents of one sentence: kept",
    "long-document": "documents over 4 Mi characters: split into several, held out together",
    "last-documents": "last documents of a small corpus: held out to evaluate on",
    "cut-documents": "ends of documents of a small corpus: held out to evaluate on",
    "redirect": "redirects: skipped",
    "not-an-article": "pages outside the article namespace: skipped",
    "unended-line": "lines of articles that don't end like a sentence: left out",
}
OUTCOMES = FAULTS | NOTES
BROKEN, UNLABELED, UNDECODABLE = "broken", "unlabeled", "undecodable"
REPEATED_HEADER = "repeated-header"  # of joined files: a broken row that loses no example


def describe_unknown(num_unknown: int, num_tokens: int, noun: str = "token") -> list[str]:
    """Describe how many tokens of texts are [UNK] in a line; none if there are none."""
    verb = "is" if num_unknown == 1 else "are"
    what = f"{verb} not in the vocabulary and {verb} read as unknown"
    return _warn(num_unknown, num_tokens, noun, what)


def describe_long_words(num_in_long: int, num_characters: int) -> list[str]:
    """Describe how many characters are in words too long for WordPiece; none if there are none."""
    long = f"are in words over {MAX_WORD_CHARS} characters, which are read as unknown"
    return _warn(num_in_long, num_characters, "character", f"{long}; put spaces between words")


def _warn(number: int, total: int, noun: str, what: str) -> list[str]:
    if not number:
        return []
    line = f"{number:,} of {pluralize(total, noun)} ({format_percent(number / total)}) {what}"
    return [f"{WARNING if number > WARNED_SHARE * total else ''}{line}"]


def name_problem(name: str, line: str) -> str:
    """Say what a line is about, after the marker of a warning."""
    marker = WARNING if line.startswith(WARNING) else ""
    return f"{marker}{name}: {line.removeprefix(WARNING)}"


def append_problems(line: str, problems: Iterable[str], separator: str = "; ") -> str:
    """Return a line with problems after it, and below it a line for each warning."""
    found = list(problems)
    others = separator.join(each for each in found if not each.startswith(WARNING))
    warnings = [each for each in found if each.startswith(WARNING)]
    return "\n".join(filter(None, ["; ".join(filter(None, [line, others])), *warnings]))


def is_unknown(num_unknown: int, num_tokens: int) -> bool:
    """Whether texts have tokens, and all of them are [UNK]."""
    return 0 < num_unknown == num_tokens


def check_unknown(
    name: str, num_unknown: int, num_tokens: int, advice: str = UNKNOWN_TEXT_ADVICE
) -> None:
    """Raise an error if texts have tokens, and all of them are [UNK]."""
    if is_unknown(num_unknown, num_tokens):
        raise InputError(
            f"{name}: none of {pluralize(num_tokens, 'token')} is in the vocabulary, so that all"
            f" are read as unknown; {advice.removeprefix(WARNING)}"
        )


def announce_unknown(num_unknown: int, num_tokens: int, name: str = "the input") -> None:
    """Announce the tokens of texts that are [UNK]; raise an error as `check_unknown` does."""
    check_unknown(name, num_unknown, num_tokens)
    for line in describe_unknown(num_unknown, num_tokens):
        announce(name_problem(name, line))


@dataclass(kw_only=True)
class Problems:
    """Counts of problems by name, and the first places, or messages, of each."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    # how lines decode, to recognize another encoding; it only decides whether reading goes on
    decoding: DecodingCounts = field(default_factory=DecodingCounts, compare=False)

    def add(self, name: str, place: str, count: int = 1) -> None:
        """Count a problem."""
        self.counts[name] = self.counts.get(name, 0) + count
        places = self.places.setdefault(name, [])
        if len(places) < MAX_PLACES:
            places.append(place)

    def merge(self, other: "Problems") -> None:
        """Add another report's counts, and its places after this report's."""
        self.decoding.add(other.decoding)
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
            self.places[name] = (self.places.get(name, []) + other.places[name])[:MAX_PLACES]


@dataclass(kw_only=True)
class ReadReport(Problems):
    """Problems of a corpus by their names in `OUTCOMES`.

    Attributes:
        max_broken: 0 if the first fault is an error. Notes never are: they don't change or lose any
            text that was meant to be read.
    """

    max_broken: Annotated[float, Field(exclude=True)] = 1.0

    @property
    def num_faults(self) -> int:
        """The number of faults."""
        return sum(self.counts.get(name, 0) for name in FAULTS)

    def add(self, name: str, place: str, count: int = 1) -> None:
        """Count a fault or a note."""
        if not self.max_broken and name in FAULTS:
            what, _, outcome = FAULTS[name].partition(": ")
            raise InputError(
                f"{place}: --max-broken 0 allows no {what} (otherwise: {outcome}); correct the"
                " input, or omit --max-broken"
            )
        super().add(name, place, count)

    def check_decodable(self, encoding: str | None, *, is_whole: bool) -> None:
        """Raise an error if all input together seems to be in another encoding than UTF-8.

        Many small files may have a line or two each.
        """
        if encoding is None:
            self.decoding.check("the input", is_whole=is_whole)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the report as JSON data."""
        found: dict[str, JsonValue] = TypeAdapter(ReadReport).dump_python(self, mode="json")
        return found

    def summary_lines(self) -> list[str]:
        """Return one line for each outcome that occurred, in the order of `OUTCOMES`."""
        lines = []
        for name in OUTCOMES:
            if name in self.counts:
                places = self.places[name] + ["…"] * (self.counts[name] > len(self.places[name]))
                what, _, outcome = OUTCOMES[name].partition(": ")
                lines.append(f"{what}: {self.counts[name]:,}; {outcome} ({', '.join(places)})")
        return lines


@dataclass
class RowReport(Problems):
    """Counts of a file's rows, updated as they are read.

    Attributes:
        num_rows: rows that were read, including broken ones. A broken section that may contain
            several rows, such as one sentence of CoNLL, counts once.
        notes: how the file as a whole is read, where that isn't evident.
    """

    name: str
    num_rows: int = 0
    num_bytes: int = 0  # decompressed
    notes: list[str] = field(default_factory=list)

    @property
    def num_broken(self) -> int:
        """Number of rows that were left out."""
        return self.counts.get(BROKEN, 0)

    @property
    def num_unlabeled(self) -> int:
        """Number of rows that were left out because a mark says that they have no label."""
        return self.counts.get(UNLABELED, 0)

    @property
    def num_undecodable(self) -> int:
        """Number of rows with invalid Unicode, which became U+FFFD."""
        return self.counts.get(UNDECODABLE, 0)

    @property
    def first_broken(self) -> list[str]:
        """The messages of the first broken rows, each with file and line."""
        return self.places.get(BROKEN, [])

    def add_broken(self, message: str, num_rows: int = 1) -> None:
        """Count rows that are left out for the same reason."""
        self.add(BROKEN, message, num_rows)

    def add_unlabeled(self, message: str) -> None:
        """Count a row that is left out because it has no label."""
        self.add(UNLABELED, message)

    def announce_notes(self) -> None:
        """Announce how the file is read, where nothing else shows the report's lines."""
        for note in self.notes:
            announce(make_legible(f"{self.name}: {note}"))

    def summary_lines(self) -> list[str]:
        """Return the problems as lines for users; empty if there are none."""
        lines = [f"{self.name}: {note}" for note in self.notes]
        for name, what in {BROKEN: "broken", UNLABELED: "without a label"}.items():
            if count := self.counts.get(name, 0):
                lines.append(f"{self._share(count)} {what} and left out:")
                lines += [f"  {message}" for message in self.places[name]]
                if count > len(self.places[name]):
                    lines.append("  …")
        if self.num_undecodable:
            share = self._share(self.num_undecodable)
            lines.append(f"{share} with invalid UTF-8, replaced by \N{REPLACEMENT CHARACTER}")
        return lines

    def check_share(self, max_broken: float, *, allows_few: bool = False) -> None:
        """Raise an error if there are no rows, or too many are broken.

        Where few are allowed, up to 5 rows, or a tenth of them if that is less, always may be.
        """
        if not self.num_rows:
            raise InputError(f"{self.name} has no rows; is it the right file, and complete?")
        num_lost = self.num_broken - self.counts.get(REPEATED_HEADER, 0)
        few = min(MAX_FEW, self.num_rows // LEAST_TIMES_FEW) if allows_few else 0
        allowed = max(few, math.floor(max_broken * self.num_rows))
        if num_lost > allowed or self.num_broken == self.num_rows:
            first = [*self.first_broken, "…"][: min(self.num_broken, MAX_PLACES + 1)]
            error = InputError(
                f"{self._share(self.num_broken)} are broken, and at most {allowed:,}"
                f" ({format_percent(max_broken)}) may be: {'; '.join(first)}; correct them, or"
                " leave them out with --max-broken"
            )
            if allows_few and num_lost < self.num_rows:
                largest = math.ceil(100 * num_lost / self.num_rows) / 100
                error.flags = (("--max-broken", f"{largest}"),)
            raise error
        if self.num_unlabeled + self.num_broken == self.num_rows:
            first = [*self.places[UNLABELED], "…"][: min(self.num_unlabeled, MAX_PLACES + 1)]
            raise InputError(f"{self.name}: no row has a label: {'; '.join(first)}")

    def _share(self, count: int) -> str:
        share = format_percent(count / self.num_rows)
        return f"{self.name}: {count:,} of {self.num_rows:,} rows ({share})"
