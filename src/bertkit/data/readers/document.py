"""The output of readers: documents, and a report of data problems."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bertkit.base.errors import InputError
from bertkit.data.encodings import DecodingCounts, EncodingSettings

Format = Literal["auto", "text", "jsonl", "parquet", "mediawiki"]


class ReaderSettings(EncodingSettings):
    """Settings of every command that reads a corpus."""

    format: Format = Field(
        default="auto", description="Format of all inputs; auto uses the file extensions."
    )
    text_column: str = Field(
        default="text", description="Field of JSONL, or column of Parquet, that has the text."
    )
    strict: bool = Field(
        default=False,
        description="Stop at the first problem in the input, and report its file and line.",
    )


MAX_PLACES = 5

FAULTS = {
    "unreadable-file": "files that can't be read: skipped",
    "truncated": "compressed files that end too early: what came before is kept",
    "damaged": "damaged files: what came before the damage is kept",
    "not-text": "files that aren't text: skipped",
    "invalid-utf8": "lines or records with invalid UTF-8: replaced by U+FFFD",
    "nul": "lines or records with NUL characters: removed",
    "long-line": "lines over 1 MiB: cut at white space",
    "long-record": "records over 16 MiB, or pages over 4 Mi characters: skipped",
    "broken-json": "lines that aren't a JSON object: skipped",
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


@dataclass(frozen=True)
class Document:
    """A text whose sentences are in their original order."""

    lines: tuple[str, ...]  # sentences or paragraphs in order, none of them blank
    group: str  # its documents share a split, e.g. `books/austen.txt.gz#12`


class ReadReport(BaseModel):
    """Problems found in the input, and how they were handled.

    Attributes:
        is_strict: whether a fault is an error. Notes never are: they don't change or lose any text
            that was meant to be read.
    """

    model_config = ConfigDict(extra="forbid")

    counts: dict[str, int] = Field(default_factory=dict)  # by the names in `OUTCOMES`
    places: dict[str, list[str]] = Field(default_factory=dict)  # the first five by the same names
    # how lines decode, to recognize another encoding
    decoding: DecodingCounts = Field(default_factory=DecodingCounts)
    is_strict: bool = Field(default=False, exclude=True)

    def add(self, name: str, place: str, count: int = 1) -> None:
        """Count a fault or a note, by its key of `OUTCOMES`."""
        if self.is_strict and name in FAULTS:
            what, _, outcome = FAULTS[name].partition(": ")
            raise InputError(
                f"{place}: --strict rejects {what} (without --strict: {outcome});"
                " correct the input, or omit --strict"
            )
        self.counts[name] = self.counts.get(name, 0) + count
        places = self.places.setdefault(name, [])
        if len(places) < MAX_PLACES:
            places.append(place)

    def check_decodable(self, encoding: str | None, *, is_whole: bool) -> None:
        """Raise an error if all input together seems to be in another encoding than UTF-8.

        Many small files may have a line or two each.
        """
        if encoding is None:
            self.decoding.check("the input", is_whole=is_whole)

    def merge(self, other: "ReadReport") -> None:
        """Add another report's counts, and its places after this report's."""
        self.decoding.add(other.decoding)
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
            self.places[name] = (self.places.get(name, []) + other.places[name])[:MAX_PLACES]

    def summary_lines(self) -> list[str]:
        """Return one line for each outcome that occurred, in the order of `OUTCOMES`."""
        lines = []
        for name in OUTCOMES:
            if name in self.counts:
                places = self.places[name] + ["…"] * (self.counts[name] > len(self.places[name]))
                what, _, outcome = OUTCOMES[name].partition(": ")
                lines.append(f"{what}: {self.counts[name]:,}; {outcome} ({', '.join(places)})")
        return lines
