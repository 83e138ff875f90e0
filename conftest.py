"""What all tests share: checked tensor shapes, fixed threads, the real text, deleted wings."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
from tests import shape_checks
from tests.processors.rounding import ROUNDING_ERROR, plant_bf16, plant_rounding_error
from tests.wings import is_left_out

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHARED_DATA = Path(__file__).resolve().parents[1] / "shared" / "data"
PROCESSORS = Path(__file__).parent / "tests" / "processors"
CHOSEN = "BERTKIT_TEST_PROCESSOR"


# Shapes and types in annotations are checked in tests only: as decorators they would break
# torch.compile. The hook has to be there before anything imports these rooms.
jaxtyping.install_import_hook(
    ["bertkit.nn", "bertkit.models", "bertkit_studies.recurrent"], "tests.shape_checks.check_types"
)

# a slow machine is no failure: neither a deadline nor a limit to how long drawing takes
PATIENT = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("local", **PATIENT)
hypothesis.settings.register_profile("ci", **PATIENT, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

# What else a machine does ends no worker: neither its memory nor how long one takes to answer.
PATIENT_RAY = {
    "USAGE_STATS_ENABLED": "0",
    "memory_monitor_refresh_ms": "0",
    "health_check_failure_threshold": "100",
    "worker_register_timeout_seconds": "300",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--precision auto` follow the table as on another processor."""
    names = [path.stem for path in PROCESSORS.glob("*.txt")]
    parser.addoption(
        "--processor",
        choices=[*names, "here"],
        default="plain",
        help="kind of processor that bertkit finds, so that auto takes the same precision on every"
        " machine; here: the machine's own",
    )
    parser.addoption(
        "--rounding-error",
        type=float,
        metavar="SHARE",
        help="plant an error into what encoders compute, of a share of each token's largest value,"
        " since kernels differ from processor to processor: tests pass with 1e-6",
    )


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of a wing whose folder is deleted; they are in folders of its name."""
    return True if is_left_out(collection_path) else None


def pytest_configure(config: pytest.Config) -> None:
    """Show bertkit the processor that was asked for, in child processes too."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(PROCESSORS) not in path:  # a worker of pytest-xdist has it from the process before it
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROCESSORS), *path]))
    if (share := config.getoption("--rounding-error")) is not None:
        os.environ[ROUNDING_ERROR] = str(share)
        plant_rounding_error(share)
    if (name := config.getoption("--processor")) == "here":
        return
    from bertkit.training import processor

    os.environ[CHOSEN] = str(PROCESSORS / f"{name}.txt")
    processor.CPU_INFO = Path(os.environ[CHOSEN])
    plant_bf16()
    processor.read_processor.cache_clear()


def pytest_collection() -> None:
    """Importing all test modules makes a million objects that stay: nothing to look for."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage of the tests only, not what is there from here to the end."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


def pytest_runtest_call() -> None:
    """Check shapes from the beginning, whatever fixtures and tests before went through."""
    shape_checks.start_again()


@pytest.fixture
def shared_data() -> Path:
    """The real text beside the project; without it the test is skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real text: {SHARED_DATA.name} isn't beside the project")
    return SHARED_DATA


@pytest.fixture(autouse=True)
def signals_are_put_back() -> Iterator[None]:
    """What a test leaves of the signals' handlers, the next one would run with."""
    before = [signal.getsignal(each) for each in STOP_SIGNALS]
    yield
    assert [signal.getsignal(each) for each in STOP_SIGNALS] == before


@pytest.fixture(scope="session", autouse=True)
def _no_lines_by_the_clock() -> Iterator[None]:
    """On a slow machine work tells how far it is, in lines that no test expects."""
    from bertkit.base import progress
    from bertkit.training import display

    with pytest.MonkeyPatch.context() as patch:
        for module in (progress, display):
            patch.setattr(module, "LINE_INTERVAL_SECONDS", float("inf"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _unmeasured() -> Iterator[None]:
    """No training run measures the machine's peak, which takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertkit.training.job.measure_peak", lambda *_: 1e11)
        yield


@pytest.fixture
def unchecked_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of our own checks: shapes and types go through as they do for a user."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session", autouse=True)
def _fixed_threads() -> None:
    """As many threads on every machine, so that sums are added up in the same order."""
    import torch

    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray of this process, with two cores; it takes seconds to start."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATIENT_RAY.items():
            patch.setenv(f"RAY_{name}", value)
        handlers = [signal.getsignal(each) for each in STOP_SIGNALS]
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        for each, handler in zip(STOP_SIGNALS, handlers, strict=True):
            signal.signal(each, handler)
        yield
        ray.shutdown()
