"""What a model writes of texts, or of the rows of a file, and how that compares with what is right.

Answer n is that to text n: an empty row has an empty answer.
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
    """Answers to texts, given once.

    Attributes:
        rewriter: the model.
        texts: what is read.
        settings: how it writes.
        counts: what was met, so far.
        elapsed_seconds: without loading the model; 0 until all were given.
    """

    rewriter: Seq2SeqGenerator
    texts: Iterable[str] | TextTable
    settings: DecodingSettings
    counts: GenerationCounts = field(default_factory=GenerationCounts)
    elapsed_seconds: float = 0.0

    def read(self, progress: ProgressBar | None = None) -> Iterator[GeneratedText]:
        """Answers in the order of the texts.

        Args:
            progress: is told of each byte of a file, of each text otherwise.
        """
        started = time.monotonic()
        texts = self._read_rows(progress) if isinstance(self.texts, TextTable) else self.texts
        yield from self.rewriter.stream(texts, self.settings, self.counts)
        self.elapsed_seconds = time.monotonic() - started

    def _read_rows(self, progress: ProgressBar | None) -> Iterator[str]:
        assert isinstance(self.texts, TextTable)
        for row in self.texts.rows():
            yield row.text
            if progress is not None:
                progress.advance(row.num_bytes)


@dataclass(frozen=True)
class Scoring:
    """Written texts, held against right ones.

    Attributes:
        num_texts: of each.
        metrics: by name.
        signatures: how they were computed.
    """

    num_texts: int
    metrics: dict[str, float]
    signatures: dict[str, str]


def read_references(
    kind: str, path: Path, settings: TableSettings, texts: Sequence[str] | TextTable
) -> list[str]:
    """Right texts, a row each, if what is written can be held against them.

    Args:
        kind: a key of `KINDS`.
        path: of a file of texts.
        settings: how it is read.
        texts: what will be read; rows of a file are counted.
    """
    KINDS[kind].load_measure()([""], [""])  # before hours of writing
    right = open_texts(path, settings)
    if isinstance(texts, TextTable):
        check_apart(texts, right)
    references = [row.text for row in right.rows()]
    num_texts = count_texts(texts)
    if num_texts is not None:
        check_numbers(num_texts, len(references))
    return references


def check_apart(texts: TextTable, right: TextTable) -> None:
    """See that texts aren't held against themselves, and that both can be read."""
    if texts.path is None and right.path is None:
        raise InputError("texts and references can't both be standard input; name a file of one")
    if texts.path is None or right.path is None or not texts.path.samefile(right.path):
        return
    are_named = texts.field is not None and right.field is not None
    if texts.format == "text" or not are_named or texts.field == right.field:
        raise InputError(
            f"{right.name} can't hold texts and references in one place; name another file of"
            " --references, or both columns with --field and --reference-field"
        )


def count_texts(texts: Sequence[str] | TextTable) -> int | None:
    """How many there are; None where they can be read only once, as from a pipe."""
    if not isinstance(texts, TextTable):
        return len(texts)
    return None if texts.size_bytes is None else sum(1 for _ in texts.rows())


def check_numbers(num_texts: int, num_references: int) -> None:
    """See that each text has its reference."""
    if num_texts != num_references or not num_texts:
        raise InputError(
            f"{num_texts:,} texts were read, and there are"
            f" {pluralize(num_references, 'reference')}; row n of"
            " one must belong to row n of the other"
        )


def score_texts(kind: str, answers: Iterable[GeneratedText], references: list[str]) -> Scoring:
    """Hold what was written against what is right.

    Args:
        kind: a key of `KINDS`.
        answers: as many as references.
        references: what is right.
    """
    texts = [answer.text for answer in islice(answers, len(references) + 1)]
    check_numbers(len(texts), len(references))
    found = KINDS[kind]
    metrics = found.load_measure()(texts, references)
    return Scoring(len(texts), metrics, load_address(found.signatures)(len(texts)))
