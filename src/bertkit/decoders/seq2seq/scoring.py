"""Generate texts, and score them against references in a file."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import ProgressBar
from bertkit.data.problems import check_unknown
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import MEMORY, TextTable, open_texts
from bertkit.decoders.generation.seq2seq_generator import (
    GeneratedText,
    GenerationCounts,
    Seq2SeqGenerator,
)
from bertkit.decoders.metrics import WRITING_METRICS


@dataclass
class GeneratedTexts:
    """Generated texts, as an iterator that can be read once."""

    generator: Seq2SeqGenerator
    texts: TextTable
    counts: GenerationCounts = field(default_factory=GenerationCounts)
    elapsed_seconds: float = 0.0  # without loading the model; 0 until all texts are generated

    def read(self, progress: ProgressBar | None = None) -> Iterator[GeneratedText]:
        """Yield the generated texts; `progress` advances by the bytes of each row of a file."""

        def read_texts() -> Iterator[str]:
            for row in self.texts.rows():
                yield row.text
                if progress is not None:
                    progress.advance(row.num_bytes)

        started = time.monotonic()
        yield from self.generator.stream(read_texts(), counts=self.counts)
        self.elapsed_seconds = time.monotonic() - started
        check_unknown("the input", self.counts.unknown_tokens, self.counts.text_tokens)


@dataclass(frozen=True)
class Scoring:
    """Scores of hypotheses against references."""

    num_texts: int
    metrics: dict[str, float]
    signatures: dict[str, str]  # how the metrics were computed


def read_references(kind: str, path: Path, settings: TableSettings, texts: TextTable) -> list[str]:
    """Read the references, one per row, and check that they can be compared with the texts."""
    WRITING_METRICS[kind].measure([""], [""])  # fail now, not after hours of generation
    right = open_texts(path, settings)
    check_apart(texts, right)
    references = [row.text for row in right.rows()]
    num_texts = count_texts(texts)
    if num_texts is not None:
        check_numbers(num_texts, len(references))
    return references


def check_apart(texts: TextTable, right: TextTable) -> None:
    """Check that texts and references differ, and that both can be read."""
    if texts.format == MEMORY:
        return
    if texts.path is None and right.path is None:
        raise InputError("texts and references can't both be standard input; name a file of one")
    one, other = texts.path, right.path
    is_same = one == other
    if isinstance(one, Path) and isinstance(other, Path):
        is_same = one.samefile(other)
    if one is None or not is_same:
        return
    columns = {texts.reading.text_column, right.reading.text_column}
    if texts.format == "text" or None in columns or len(columns) == 1:
        raise InputError(
            f"{right.name} can't hold texts and references in the same column; name another file"
            f" with --references, or both columns with --text-column and --target-column"
        )


def count_texts(texts: TextTable) -> int | None:
    """Return the number of texts; None if they can be read only once, as from a pipe."""
    return None if texts.size_bytes is None else sum(1 for _ in texts.rows())


def check_numbers(num_texts: int, num_references: int) -> None:
    """Check that each text has a reference."""
    if num_texts != num_references or not num_texts:
        raise InputError(
            f"expected a reference for each text, got {pluralize(num_texts, 'text')} and"
            f" {pluralize(num_references, 'reference')}; row n of one must belong to row n of the"
            " other"
        )


def score_texts(kind: str, answers: Iterable[GeneratedText], references: list[str]) -> Scoring:
    """Score hypotheses against references."""
    texts = [answer.text for answer in islice(answers, len(references) + 1)]
    check_numbers(len(texts), len(references))
    found = WRITING_METRICS[kind]
    return Scoring(len(texts), found.measure(texts, references), found.describe(len(texts)))
