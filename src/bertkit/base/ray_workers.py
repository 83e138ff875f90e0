"""Parts of a job as tasks of a Ray cluster."""

import logging
import os
import pickle
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bertkit.base.errors import BertkitError, MissingExtraError, SettingsError, StoppedError
from bertkit.base.extras import describe_install
from bertkit.base.parts import (
    Advance,
    AnyJob,
    Part_contra,
    PartsJob,
    Result_co,
    WorkersSettings,
    thread_variables,
)
from bertkit.base.signals import find_handlers, handled_by

POLL_SECONDS = 0.5
CONNECT_SECONDS = 10
CANCEL_SECONDS = 10
MAX_RETRIES = 3  # of a part whose process or node died
QUEUED_PER_WORKER = 2
IMPORT_FAILED = "failed to import on the worker"


class TaskOutcome(NamedTuple):
    """What a task returns."""

    result: Any
    num_bytes: int
    error: BertkitError | None = None


def run_on_ray(
    job: PartsJob[Part_contra, Result_co],
    parts: Sequence[Part_contra],
    settings: WorkersSettings,
    advance: Advance,
) -> Iterator[tuple[int, Result_co]]:
    """Run parts on a cluster; yield the number of each and its result.

    A part whose worker dies is run again, as often as `MAX_RETRIES` says.
    """
    num_threads = settings.threads or 1
    with _connected(settings.run_on) as ray:
        num_gpus = job.num_gpus if ray.cluster_resources().get("GPU") else 0
        options = {"num_cpus": num_threads, "num_gpus": num_gpus, "max_retries": MAX_RETRIES}
        run = ray.remote(**options)(run_task)
        packed = ray.put(pickle.dumps(job))
        queue, pending = iter(enumerate(parts)), dict[Any, int]()
        try:
            while True:
                cores = int(ray.cluster_resources().get("CPU", 1))  # it may grow meanwhile
                limit = settings.workers or QUEUED_PER_WORKER * max(1, cores // num_threads)
                while len(pending) < limit and (entry := next(queue, None)) is not None:
                    number, part = entry
                    pending[run.remote(packed, part, num_threads, str(Path.cwd()))] = number
                if not pending:
                    return
                done, _ = ray.wait(list(pending), timeout=POLL_SECONDS)
                for reference in done:
                    outcome = _get(ray, reference)
                    advance(outcome.num_bytes)
                    yield pending.pop(reference), outcome.result
        finally:
            with suppress(ray.exceptions.RayError):  # the cluster may be gone
                # The caller may remove what they write. Ray may end this process when a task is
                # forced that is just being finished, so only those that don't stop are.
                left = list(pending)
                for is_forced in (False, True):
                    for reference in left:
                        ray.cancel(reference, force=is_forced)
                    if left:
                        count = len(left)
                        _, left = ray.wait(left, num_returns=count, timeout=CANCEL_SECONDS)


def run_task(packed: bytes, part: Part_contra, num_threads: int, folder: str) -> TaskOutcome:
    """Run one part in a worker of the cluster, in the driver's current folder."""
    os.environ.update(thread_variables(num_threads))  # read when torch and tokenizers are loaded
    with suppress(OSError):  # not shared; paths are absolute then, or the witness isn't found
        os.chdir(folder)
    counts: list[int] = []
    try:
        job = _unpack(packed)
        if not job.witness.exists():
            raise SettingsError(
                f"a Ray worker on {socket.gethostname()} doesn't see {job.witness}; --output and"
                " the inputs must be on a folder that all nodes share, under the same path"
            )
        return TaskOutcome(job(part, counts.append), sum(counts))
    except BertkitError as error:
        return TaskOutcome(None, sum(counts), error)


@lru_cache(maxsize=1)
def _unpack(packed: bytes) -> AnyJob:
    """Unpickle a job once in each worker, so that it keeps what it has loaded."""
    job: AnyJob = pickle.loads(packed)  # noqa: S301 - of the driver, through Ray's own pickles
    return job


def _get(ray: ModuleType, reference: Any) -> TaskOutcome:
    """Return the outcome of a task, or raise what ended it."""
    try:
        outcome: TaskOutcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if IMPORT_FAILED in str(error):
            raise SettingsError(
                "the Ray cluster can't import bertkit; install the same version of it on all nodes"
            ) from None
        raise
    except ray.exceptions.RayError as error:
        raise StoppedError(
            f"a part failed on Ray {MAX_RETRIES + 1} times ({type(error).__name__}), perhaps"
            " because memory ran out; finished parts are saved, and the same command resumes"
            " (fewer --workers or more --threads leave more memory to each)"
        ) from None
    if outcome.error is not None:
        raise outcome.error
    return outcome


@contextmanager
def _connected(run_on: str) -> Iterator[ModuleType]:
    """Yield Ray, connected to a cluster for the block unless the caller already is connected."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError(f"--run-on ray needs Ray; {describe_install('ray')}") from None
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # reports of a cluster that starts here
    address = os.environ.get("RAY_ADDRESS", "auto") if run_on == "ray" else run_on
    _check_address(address)
    handlers = find_handlers()  # Ray replaces them by its own
    with handled_by(handlers, handlers):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise SettingsError(
                f"no Ray cluster answers at {address} ({error}); start one with `ray start"
                " --head`; where a cluster asks for a token, set RAY_AUTH_MODE=token"
            ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address where nothing listens, since Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise SettingsError(
            f"no Ray cluster answers at {address} ({error.strerror or error}); give the address"
            " that `ray start --head` prints for its clients, with the port 10001"
        ) from None
