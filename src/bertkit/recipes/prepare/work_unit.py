"""One unit of `prepare`'s work: sources → shards, as a pure function without shared state."""

import hashlib
import multiprocessing
import os
import signal
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import BertkitError, SettingsError, StoppedError, pluralize
from bertkit.base.signals import HANGUPS, delay_stop_signals
from bertkit.data.readers import read_source
from bertkit.data.readers.document import Document, ReadReport
from bertkit.data.readers.sources import TextSource
from bertkit.data.sentences import split_sentences
from bertkit.data.shards import (
    TOKENIZER_FOLDER,
    ShardRecord,
    Split,
    SplitCounts,
    choose_dtype,
    shard_path,
    write_array,
)
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
    advance: Callable[[int], None],
) -> None:
    """Write the shards and the result of one unit, whose sources are all held out, or none."""
    report = ReadReport()
    writers = {
        split: ShardWriter(folder, split, number, tokenizer.vocab_size, SHARD_TOKENS)
        for split in SPLITS
    }
    raw_bytes = 0
    documents = (
        document
        for source in sources
        for document in read_source(source, settings, report, advance)
    )
    for batch in batch_documents(documents):
        for document, ids, lengths in tokenize_documents(batch, settings, tokenizer):
            raw_bytes += sum(len(line.encode()) for line in document.lines)
            if len(lengths):
                is_held_out = sources[0].is_held_out
                split = "held-out" if is_held_out else choose_split(document.group, settings)
                writers[split].add(ids, lengths)
            if len(lengths) <= 1:
                report.add("one-sentence" if len(lengths) else "empty-document", document.group)
    for writer in writers.values():
        writer.flush()
    UnitResult(
        shards=[record for writer in writers.values() for record in writer.records],
        token_counts=write_array(unit_path(folder, number, "npy"), writers["train"].token_counts),
        raw_bytes=raw_bytes,
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
    """Yield each document with its token ids and the lengths of its non-empty sentences."""
    sentences = [split_document(document, settings) for document in documents]
    pieces = tokenizer.piece_arrays(list(chain.from_iterable(sentences)))
    ends = np.append(0, pieces.ends)
    first = 0
    for document, own in zip(documents, sentences, strict=True):
        own_ends = ends[first : first + len(own) + 1]
        lengths = np.diff(own_ends)
        yield document, pieces.ids[own_ends[0] : own_ends[-1]], lengths[lengths > 0]
        first += len(own)


def split_document(document: Document, settings: PrepareSettings) -> list[str]:
    """Return the sentences of a document."""
    if settings.sentences == "lines":
        return list(document.lines)
    return [
        sentence for line in document.lines for sentence in split_sentences(line, settings.language)
    ]


def choose_split(group: str, settings: PrepareSettings) -> Split:
    """Choose the split of a group of documents: a pure function of its name and the seed."""
    digest = hashlib.blake2b(f"{settings.seed}:{group}".encode(), digest_size=8).digest()
    is_held_out = int.from_bytes(digest, "big") < settings.held_out * 2**64
    return "held-out" if is_held_out else "train"


POLL_SECONDS = 0.2
QUEUED_PER_WORKER = 2


def run_in_processes(
    output: Path,
    units: Mapping[int, Sequence[TextSource]],
    settings: PrepareSettings,
    num_workers: int,
) -> Iterator[int]:
    """Prepare units in parallel; yield the number of bytes read since the last yield."""
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    executor = ProcessPoolExecutor(
        num_workers, context, initializer=_start, initargs=(output, settings, counter)
    )
    queue = iter(units.items())
    pending: set[Future[None]] = set()
    seen = 0
    others, workers = set(multiprocessing.active_children()), set[BaseProcess]()
    try:
        while True:
            # No signal may interrupt the submission half-way, and workers started here must never
            # receive signals that a terminal sends to its whole process group.
            with delay_stop_signals(), _blocked_terminal():
                for unit in islice(queue, QUEUED_PER_WORKER * num_workers - len(pending)):
                    pending.add(executor.submit(_work, *unit))
            workers = workers or set(multiprocessing.active_children()) - others
            if not pending:
                break
            done, pending = wait(pending, POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            count = counter.get_obj().value  # not locked: a killed worker may hold the lock
            yield count - seen
            seen = count
    except BrokenProcessPool:
        _end(executor, others)
        raise _explain_end(workers, counter.get_obj().value) from None
    except BaseException:
        _end(executor, others)
        raise
    executor.shutdown()


def _end(executor: ProcessPoolExecutor, others: set[BaseProcess]) -> None:
    """Terminate the workers, but not the processes that the caller already had."""
    for child in set(multiprocessing.active_children()) - others:
        child.terminate()
    executor.shutdown(cancel_futures=True)


def _explain_end(workers: set[BaseProcess], num_bytes: int) -> BertkitError:
    """Return the error for dead workers: failed to start if they exited before reading anything."""
    if not num_bytes and any((worker.exitcode or 0) > 0 for worker in workers):
        return SettingsError(
            f"{pluralize(len(workers), 'worker')} can't be started, for the reason above; a"
            " script must call"
            ' prepare() below `if __name__ == "__main__":`, or with workers=1'
        )
    return StoppedError(
        "a worker process was killed, perhaps because memory ran out; finished parts are saved, and"
        " the same command resumes (fewer --workers need less memory)"
    )


@contextmanager
def _blocked_terminal() -> Iterator[None]:
    """Block Ctrl-C and SIGHUP in this thread; processes it starts inherit the mask for good."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *HANGUPS})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class _Worker:
    """The state that a worker process keeps between units."""

    output: Path
    settings: PrepareSettings
    counter: "Synchronized[int]"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.output / TOKENIZER_FOLDER)

    def advance(self, count: int) -> None:
        with self.counter.get_lock():
            self.counter.value += count


_workers: list[_Worker] = []  # one in each worker process: a task can reach its state only here


def _start(output: Path, settings: PrepareSettings, counter: "Synchronized[int]") -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _workers.append(_Worker(output, settings, counter))  # do no more here: errors would be lost


def _end_with_parent() -> None:
    """Exit when the parent is gone: the next process to lock the folder writes the same files."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(number: int, sources: Sequence[TextSource]) -> None:
    worker = _workers[0]
    prepare_unit(worker.output, number, sources, worker.settings, worker.tokenizer, worker.advance)
