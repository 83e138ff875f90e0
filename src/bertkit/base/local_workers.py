"""Parts of a job in processes of this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from bertkit.base.errors import BertkitError, SettingsError, StoppedError, pluralize
from bertkit.base.parts import (
    Advance,
    AnyJob,
    Part_contra,
    PartsJob,
    Result_co,
    count_cores,
    thread_variables,
)
from bertkit.base.signals import HANGUPS, delay_stop_signals

POLL_SECONDS = 0.2
QUEUED_PER_WORKER = 2


def run_in_processes(
    job: PartsJob[Part_contra, Result_co],
    parts: Sequence[Part_contra],
    num_workers: int,
    num_threads: int | None,
    advance: Advance,
) -> Iterator[tuple[int, Result_co]]:
    """Run parts in parallel; yield the number of each and its result."""
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    executor = ProcessPoolExecutor(
        num_workers, context, initializer=_start, initargs=(job, counter)
    )
    queue = iter(enumerate(parts))
    pending: dict[Future[Result_co], int] = {}
    seen = 0
    others, workers = set(multiprocessing.active_children()), set[BaseProcess]()
    try:
        while True:
            # No signal may interrupt the submission half-way, and workers started here must never
            # receive signals that a terminal sends to its whole process group.
            with delay_stop_signals(), _starting(num_workers, num_threads):
                for number, part in islice(queue, QUEUED_PER_WORKER * num_workers - len(pending)):
                    pending[executor.submit(_work, part)] = number
            workers = workers or set(multiprocessing.active_children()) - others
            if not pending:
                break
            done, _ = wait(pending, POLL_SECONDS, return_when=FIRST_COMPLETED)
            count = counter.get_obj().value  # not locked: a killed worker may hold the lock
            advance(count - seen)
            seen = count
            for future in done:
                yield pending.pop(future), future.result()
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
            ' script must do this below `if __name__ == "__main__":`, or with workers=1'
        )
    return StoppedError(
        "a worker process was killed, perhaps because memory ran out; finished parts are saved, and"
        " the same command resumes (fewer --workers need less memory)"
    )


@contextmanager
def _starting(num_workers: int, num_threads: int | None) -> Iterator[None]:
    """Set what each worker that is started inherits for good: no Ctrl-C or SIGHUP; its threads.

    The user's own variables hold.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *HANGUPS})
    wanted = thread_variables(num_threads or max(1, count_cores() // num_workers))
    before = {name: os.environ[name] for name in wanted if name in os.environ}
    os.environ.update(wanted if num_threads is not None else {**wanted, **before})
    try:
        yield
    finally:
        for name in wanted:
            del os.environ[name]
        os.environ.update(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


# One in each worker process, with what it has loaded.
_jobs: list[tuple[AnyJob, Advance]] = []


def _start(job: PartsJob[Part_contra, Result_co], counter: "Synchronized[int]") -> None:
    def advance(count: int) -> None:
        with counter.get_lock():
            counter.value += count

    threading.Thread(target=_end_with_parent, daemon=True).start()
    _jobs.append((job, advance))  # do no more here: errors would be lost


def _end_with_parent() -> None:
    """Exit when the parent is gone: the next process to lock the folder writes the same files."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(part: Part_contra) -> Any:
    job, advance = _jobs[0]
    return job(part, advance)
