"""Running units in several processes, with progress, and without a trace when stopped."""

import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from bertkit.base.errors import StoppedError
from bertkit.data.readers.sources import Source
from bertkit.data.shards import TOKENIZER_FOLDER
from bertkit.recipes.prepare.settings import PrepareSettings
from bertkit.recipes.prepare.unit import prepare_unit
from bertkit.tokenization.tokenizer import Tokenizer

POLL_SECONDS = 0.2
QUEUED_PER_WORKER = 2


def run_in_processes(
    output: Path,
    units: Mapping[int, Sequence[Source]],
    settings: PrepareSettings,
    num_workers: int,
) -> Iterator[int]:
    """Prepare units; yields how many bytes were read since the last time.

    Raises:
        StoppedError: a worker was killed from outside.
        BertkitError: what a unit raises; the others are ended.
    """
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    executor = ProcessPoolExecutor(
        num_workers, context, initializer=_start, initargs=(output, settings, counter)
    )
    queue = iter(units.items())
    pending: set[Future[None]] = set()
    seen = 0
    try:
        while True:
            with _blocked_interrupts():  # a worker that is started now never gets Ctrl-C
                for unit in islice(queue, QUEUED_PER_WORKER * num_workers - len(pending)):
                    pending.add(executor.submit(_work, *unit))
            if not pending:
                break
            done, pending = wait(pending, POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            count = counter.get_obj().value  # the lock may be a killed worker's
            yield count - seen
            seen = count
    except BrokenProcessPool:
        _end(executor)
        raise StoppedError(
            "a worker process was killed, perhaps for want of memory; finished parts are saved and"
            " the same command goes on (fewer --workers need less memory)"
        ) from None
    except BaseException:
        _end(executor)
        raise
    executor.shutdown()


def _end(executor: ProcessPoolExecutor) -> None:
    for child in multiprocessing.active_children():
        child.terminate()
    executor.shutdown(cancel_futures=True)


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back; processes that are started meanwhile hold it back for good."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class _Worker:
    """What one process keeps between units."""

    output: Path
    settings: PrepareSettings
    tokenizer: Tokenizer
    counter: "Synchronized[int]"

    def advance(self, count: int) -> None:
        with self.counter.get_lock():
            self.counter.value += count


_workers: list[_Worker] = []  # one, in a worker: its only way to reach what it was started with


def _start(output: Path, settings: PrepareSettings, counter: "Synchronized[int]") -> None:
    tokenizer = Tokenizer.load(output / TOKENIZER_FOLDER)
    _workers.append(_Worker(output, settings, tokenizer, counter))


def _work(number: int, sources: Sequence[Source]) -> None:
    worker = _workers[0]
    prepare_unit(worker.output, number, sources, worker.settings, worker.tokenizer, worker.advance)
