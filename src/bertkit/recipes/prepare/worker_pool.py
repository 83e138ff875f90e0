"""Runs units of work in worker processes; when stopped, it leaves no worker behind."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from bertkit.base.errors import BertkitError, SettingsError, StoppedError
from bertkit.base.wording import pluralize
from bertkit.data.readers.sources import TextSource
from bertkit.data.shards import TOKENIZER_FOLDER
from bertkit.recipes.prepare.settings import PrepareSettings
from bertkit.recipes.prepare.work_unit import prepare_unit
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.signals import HANGUPS, delay_stop_signals

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
