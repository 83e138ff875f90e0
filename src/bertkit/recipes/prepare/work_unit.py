"""One unit of `prepare`'s work: sources → shards, as a pure function without shared state."""

import hashlib
import platform
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import MissingFileError
from bertkit.base.output import open_output
from bertkit.base.parts import Advance
from bertkit.data.documents import Document, read_source
from bertkit.data.problems import ReadReport
from bertkit.data.sentences import split_sentences
from bertkit.data.shards import (
    PLAN,
    TOKENIZER_FOLDER,
    ShardRecord,
    Split,
    SplitCounts,
    choose_dtype,
    shard_path,
)
from bertkit.data.sources import TextSource
from bertkit.data.writers import write_array
from bertkit.recipes.settings import PrepareSettings
from bertkit.tokenization.tokenizer import Tokenizer

UNITS_FOLDER = "units"
# A shard is written once it has this many tokens, to bound memory.
SHARD_TOKENS = 1 << 24
BATCH_CHARACTERS = 1 << 20
SPLITS: tuple[Split, ...] = ("train", "held-out")


class UnitResult(ChecksummedModel):
    """The record of the files that one unit wrote."""

    description: ClassVar[str] = "the record of a unit of `bertkit prepare`"

    shards: list[ShardRecord]
    token_counts: FileRecord
    raw_bytes: int
    characters: int = 0
    long_word_characters: int = 0
    report: ReadReport


class ShardWriter:
    """Collects the documents of one split of one unit, and writes each shard when it is full."""

    def __init__(
        self, folder: Path, split: Split, unit: int, vocab_size: int, shard_tokens: int
    ) -> None:
        self.records: list[ShardRecord] = []
        self._folder, self._split, self._unit = folder, split, unit
        self._dtype, self._shard_tokens = choose_dtype(vocab_size), shard_tokens
        self.token_counts = np.zeros(vocab_size, dtype=np.uint64)  # of all documents
        self._clear()

    def _clear(self) -> None:
        self._tokens = array(self._dtype.char)
        self._sentences, self._documents = array("Q", [0]), array("Q", [0])

    def add(self, ids: NDArray[np.uint32], lengths: NDArray[np.int64]) -> None:
        """Add a document: the token ids of all its sentences, and the length of each sentence."""
        ends = len(self._tokens) + np.cumsum(lengths)
        self._tokens.frombytes(ids.astype(self._dtype).tobytes())
        self._sentences.frombytes(ends.astype(np.uint64).tobytes())
        self._documents.append(len(self._sentences) - 1)
        if len(self._tokens) >= self._shard_tokens:
            self.flush()

    def flush(self) -> None:
        """Write the collected documents as a shard, if there are any."""
        if len(self._documents) == 1:
            return
        tokens = np.frombuffer(self._tokens, dtype=self._dtype)
        record = write_shard(
            self._folder,
            f"{self._split}-{self._unit:05d}-{len(self.records):03d}",
            self._split,
            tokens=tokens,
            sentences=np.frombuffer(self._sentences, dtype=np.uint64),
            documents=np.frombuffer(self._documents, dtype=np.uint64),
        )
        occurrences = np.bincount(tokens, minlength=len(self.token_counts))
        self.token_counts += occurrences.astype(np.uint64)
        self.records.append(record)
        self._clear()


def write_shard(
    folder: Path,
    name: str,
    split: Split,
    *,
    tokens: NDArray[np.unsignedinteger],
    sentences: NDArray[np.uint64],
    documents: NDArray[np.uint64],
) -> ShardRecord:
    """Write the three files of a shard; arrays as in `bertkit.data.shards`."""
    arrays = {"tokens": tokens, "sentences": sentences, "documents": documents}
    counts = SplitCounts(
        documents=len(documents) - 1, sentences=len(sentences) - 1, tokens=len(tokens)
    )
    files = {
        part: write_array(shard_path(folder, name, part), content)
        for part, content in arrays.items()
    }
    return ShardRecord(name=name, split=split, counts=counts, files=files)


def prepare_unit(
    folder: Path,
    number: int,
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    tokenizer: Tokenizer,
    advance: Advance,
) -> None:
    """Write the shards and the result of one unit, whose sources are all held out, or none."""
    report = ReadReport()
    writers = {
        split: ShardWriter(folder, split, number, tokenizer.vocab_size, SHARD_TOKENS)
        for split in SPLITS
    }
    raw_bytes = num_characters = num_in_long = 0
    documents = (
        replace(document, split_key=source.own_name + document.group.removeprefix(source.name))
        for source in sources
        for document in read_source(source, settings, report, advance)
    )
    for batch in batch_documents(documents):
        for document, ids, lengths in tokenize_documents(batch, settings, tokenizer):
            raw_bytes += sum(len(line.encode()) for line in document.lines)
            num_characters += sum(map(len, document.lines))
            if (ids == tokenizer.unk_id).any():
                num_in_long += sum(map(tokenizer.count_in_long_words, document.lines))
            if len(lengths):
                is_held_out = sources[0].is_held_out
                split = "held-out" if is_held_out else choose_split(document.split_key, settings)
                writers[split].add(ids, lengths)
            if len(lengths) <= 1:
                report.add("one-sentence" if len(lengths) else "empty-document", document.group)
    for writer in writers.values():
        writer.flush()
    UnitResult(
        shards=[record for writer in writers.values() for record in writer.records],
        token_counts=write_array(unit_path(folder, number, "npy"), writers["train"].token_counts),
        raw_bytes=raw_bytes,
        characters=num_characters,
        long_word_characters=num_in_long,
        report=report,
    ).save(unit_path(folder, number, "json"))


def read_unit(folder: Path, number: int, verify: Callable[[Path, FileRecord], None]) -> UnitResult:
    """Read the result of a finished unit; `verify` checks each file against its record."""
    result = UnitResult.load(unit_path(folder, number, "json"))
    verify(unit_path(folder, number, "npy"), result.token_counts)
    for shard in result.shards:
        for part, record in shard.files.items():
            verify(shard_path(folder, shard.name, part), record)
    return result


def unit_path(folder: Path, number: int, suffix: str) -> Path:
    """Return the path of a unit's result file."""
    return folder / UNITS_FOLDER / f"{number:05d}.{suffix}"


def batch_documents(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield documents in batches of about a million characters, which tokenize fastest."""
    batch: list[Document] = []
    num_characters = 0
    for document in documents:
        batch.append(document)
        num_characters += sum(map(len, document.lines))
        if num_characters >= BATCH_CHARACTERS:
            yield batch
            batch, num_characters = [], 0
    if batch:
        yield batch


def tokenize_documents(
    documents: Sequence[Document], settings: PrepareSettings, tokenizer: Tokenizer
) -> Iterator[tuple[Document, NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield each document with its token ids and the lengths of its non-empty sentences.

    Sentences other than a document's first are tokenized as they stand in it, behind a blank.
    """
    sentences = [
        list(document.lines)
        if settings.sentences == "lines"
        else [one for line in document.lines for one in split_sentences(line, settings.language)]
        for document in documents
    ]
    placed = [[*own[:1], *map(tokenizer.place_word, own[1:])] for own in sentences]
    pieces = tokenizer.piece_arrays(list(chain.from_iterable(placed)))
    ends = np.append(0, pieces.ends)
    first = 0
    for document, own in zip(documents, sentences, strict=True):
        own_ends = ends[first : first + len(own) + 1]
        lengths = np.diff(own_ends)
        yield document, pieces.ids[own_ends[0] : own_ends[-1]], lengths[lengths > 0]
        first += len(own)


def choose_split(key: str, settings: PrepareSettings) -> Split:
    """Choose the split of a group of documents: a pure function of its key and the seed."""
    digest = hashlib.blake2b(f"{settings.seed}:{key}".encode(), digest_size=8).digest()
    is_held_out = int.from_bytes(digest, "big") < settings.held_out * 2**64
    return "held-out" if is_held_out else "train"


@dataclass(frozen=True)
class PrepareUnit:
    """The job whose parts are units: a number, and its sources."""

    output: Path
    settings: PrepareSettings
    is_shared: bool = False  # whether other processes may be at the same units
    num_gpus: ClassVar[int] = 0

    @property
    def witness(self) -> Path:
        """The plan."""
        return self.output / PLAN

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.output / TOKENIZER_FOLDER)

    def __call__(self, unit: tuple[int, Sequence[TextSource]], advance: Advance) -> None:
        """Prepare a unit, which is locked if another process may be at it.

        Raises:
            MissingFileError: a file that was planned isn't there.
            ResumeError: another process is at it, such as a lost task of Ray's.
        """
        number, sources = unit
        for source in sources:
            if source.size_bytes and isinstance(source.path, Path) and not source.path.exists():
                raise MissingFileError(
                    f"{source.path} was there when the work was planned, and isn't on"
                    f" {platform.node()} now; all workers must see the inputs under the same path"
                )
        place = unit_path(self.output, number, "json")
        with open_output(place, "preparing") if self.is_shared else nullcontext():
            prepare_unit(self.output, number, sources, self.settings, self._tokenizer, advance)
