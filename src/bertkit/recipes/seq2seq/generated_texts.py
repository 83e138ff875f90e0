"""Generates texts from inputs or the rows of a file, and scores them against references.

Output n belongs to input n: an empty row has an empty output.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from bertkit.base.errors import InputError
from bertkit.base.progress import ProgressBar
from bertkit.base.wording import pluralize
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import TextTable, open_texts
from bertkit.decoding.settings import DecodingSettings
from bertkit.generation.seq2seq_generator import GeneratedText, GenerationCounts, Seq2SeqGenerator
from bertkit.recipes.seq2seq.kinds import KINDS, load_address


@dataclass
class GeneratedTexts:
    """Generated texts, as an iterator that can be read once.

    Attributes:
        generator: the generator with its model.
        texts: the inputs.
        settings: decoding settings.
        counts: counts of texts and problems so far.
        elapsed_seconds: time without loading the model; 0 until all texts are generated.
    """

    generator: Seq2SeqGenerator
    texts: Iterable[str] | TextTable
    settings: DecodingSettings
    counts: GenerationCounts = field(default_factory=GenerationCounts)
    elapsed_seconds: float = 0.0

    def read(self, progress: ProgressBar | None = None) -> Iterator[GeneratedText]:
        """Yield the generated texts in the order of the inputs.

        Args:
            progress: advanced by the bytes of each row of a file; unused for other inputs.
        """
        started = time.monotonic()
        texts = self._read_rows(progress) if isinstance(self.texts, TextTable) else self.texts
        yield from self.generator.stream(texts, self.settings, self.counts)
        self.elapsed_seconds = time.monotonic() - started

    def _read_rows(self, progress: ProgressBar | None) -> Iterator[str]:
        assert isinstance(self.texts, TextTable)
        for row in self.texts.rows():
            yield row.text
            if progress is not None:
                progress.advance(row.num_bytes)


@dataclass(frozen=True)
class Scoring:
    """Scores of hypotheses against references.

    Attributes:
        num_texts: number of hypotheses, equal to that of references.
        metrics: metrics by name.
        signatures: how the metrics were computed.
    """

    num_texts: int
    metrics: dict[str, float]
    signatures: dict[str, str]


def read_references(
    kind: str, path: Path, settings: TableSettings, texts: Sequence[str] | TextTable
) -> list[str]:
    """Read the references, one per row, and check that they can be compared with the texts.

    Args:
        kind: a key of `KINDS`.
        path: path of the file of references.
        settings: how to read the file.
        texts: the inputs of the model; rows of a file are counted.
    """
    KINDS[kind].load_measure()([""], [""])  # fail now, not after hours of generation
    right = open_texts(path, settings)
    if isinstance(texts, TextTable):
        check_apart(texts, right)
    references = [row.text for row in right.rows()]
    num_texts = count_texts(texts)
    if num_texts is not None:
        check_numbers(num_texts, len(references))
    return references


def check_apart(texts: TextTable, right: TextTable) -> None:
    """Check that texts and references differ, and that both can be read."""
    if texts.path is None and right.path is None:
        raise InputError("texts and references can't both be standard input; name a file of one")
    if texts.path is None or right.path is None or not texts.path.samefile(right.path):
        return
    are_named = texts.text_column is not None and right.text_column is not None
    if texts.format == "text" or not are_named or texts.text_column == right.text_column:
        raise InputError(
            f"{right.name} can't hold texts and references in the same column; name another file"
            f" with --references, or both columns with --text-column and --reference-column"
        )


def count_texts(texts: Sequence[str] | TextTable) -> int | None:
    """Return the number of texts; None if they can be read only once, as from a pipe."""
    if not isinstance(texts, TextTable):
        return len(texts)
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
    """Score hypotheses against references.

    Args:
        kind: a key of `KINDS`.
        answers: the hypotheses, as many as references.
        references: the references.
    """
    texts = [answer.text for answer in islice(answers, len(references) + 1)]
    check_numbers(len(texts), len(references))
    found = KINDS[kind]
    metrics = found.load_measure()(texts, references)
    return Scoring(len(texts), metrics, load_address(found.signatures)(len(texts)))
