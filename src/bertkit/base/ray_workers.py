"""Parts of a job as tasks of a Ray cluster."""

import os
import pickle
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bertkit.base.errors import BertkitError, MissingExtraError, SettingsError, StoppedError
from bertkit.base.extras import describe_install
from bertkit.base.parts import Advance, PartsJob, WorkersSettings, thread_variables
from bertkit.base.signals import STOP_SIGNALS

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
    job: PartsJob,
    parts: Sequence[Any],
    settings: WorkersSettings,
    advance: Advance,
) -> Iterator[tuple[int, Any]]:
    """Run parts on a cluster; yield the number of each and its result.

    A part whose worker dies is run again, as often as `MAX_RETRIES` says.
    """
    ray = _import_ray()
    num_threads = settings.threads or 1
    with _connected(ray, settings.run_on):
        num_gpus = job.num_gpus if ray.cluster_resources().get("GPU") else 0
        options = {"num_cpus": num_threads, "num_gpus": num_gpus, "max_retries": MAX_RETRIES}
        run = ray.remote(**options)(run_task)
        packed = ray.put(pickle.dumps(job))
        queue, pending = iter(enumerate(parts)), dict[Any, int]()
        try:
            while True:
                limit = settings.workers or _count_queued(ray, num_threads)
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
                for reference in pending:
                    ray.cancel(reference, force=True)
                if pending:  # the caller may remove what they write
                    ray.wait(list(pending), num_returns=len(pending), timeout=CANCEL_SECONDS)


def run_task(packed: bytes, part: Any, num_threads: int, folder: str) -> TaskOutcome:
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
def _unpack(packed: bytes) -> PartsJob:
    """Unpickle a job once in each worker, so that it keeps what it has loaded."""
    job: PartsJob = pickle.loads(packed)  # noqa: S301 - of the driver, through Ray's own pickles
    return job


def _count_queued(ray: ModuleType, num_threads: int) -> int:
    """How many tasks the cluster is given at a time; it may grow meanwhile."""
    cores = int(ray.cluster_resources().get("CPU", 1))
    return QUEUED_PER_WORKER * max(1, cores // num_threads)


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


def _import_ray() -> ModuleType:
    try:
        import ray
    except ImportError:
        raise MissingExtraError(f"--run-on ray needs Ray; {describe_install('ray')}") from None
    module: ModuleType = ray
    return module


@contextmanager
def _connected(ray: ModuleType, run_on: str) -> Iterator[None]:
    """Connect to a cluster for the block, unless the caller already is connected."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # reports of a cluster that starts here
    address = os.environ.get("RAY_ADDRESS", "auto") if run_on == "ray" else run_on
    _check_address(address)
    with _kept_handlers():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise SettingsError(
                f"no Ray cluster answers at {address} ({error}); start one with `ray start"
                " --head`; where a cluster asks for a token, set RAY_AUTH_MODE=token"
            ) from None
    try:
        yield
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


@contextmanager
def _kept_handlers() -> Iterator[None]:
    """Restore handlers of signals, which Ray replaces by its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in STOP_SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
