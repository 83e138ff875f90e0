"""Each parser of foreign files, fed with mutated ones: always the same, whatever the machine.

`BERTKIT_FUZZ_SEED` chooses other files, and `BERTKIT_FUZZ_SECONDS` as many as can be tried in that
time of computing. The output names the seed; inputs that fail are kept in `BERTKIT_FUZZ_FOLDER`.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.fuzz import folder_target, modules_target, records_target

from bertkit.base.errors import BertkitError

SECONDS = os.environ.get("BERTKIT_FUZZ_SECONDS", "").split()
SEED = os.environ.get("BERTKIT_FUZZ_SEED", "0")
NUM_AT_ONCE = 2
ROOT = Path(__file__).parents[2]
TARGETS = sorted(
    path.stem.removesuffix("_target") for path in Path(__file__).parent.glob("*_target.py")
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
]


def run_target(target: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "tests.fuzz.driver", target, SEED, folder, *SECONDS]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def endings(tmp_path_factory):
    """How each target's process ends; all of them run side by side, two at a time."""
    named = os.environ.get("BERTKIT_FUZZ_FOLDER")
    folder = Path(named).resolve() if named else tmp_path_factory.mktemp("fuzz")
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        return {target: pool.submit(run_target, target, folder) for target in TARGETS}


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", TARGETS)
def test_mutated_files_come_to_errors_of_ours(target, endings, capsys):
    ending = endings[target].result()
    with capsys.disabled():
        sys.stdout.write(f"\n{ending.stdout}")
    assert ending.returncode == 0, f"seed {SEED}: {ending.stdout}{ending.stderr}"


@pytest.mark.parametrize("data", records_target.FAILED)
def test_files_that_failed_come_to_errors_of_ours(data, tmp_path):
    with suppress(BertkitError):
        records_target.read(data, tmp_path)


@pytest.mark.parametrize("target", [folder_target, modules_target, records_target])
def test_the_good_examples_are_read_to_the_end(target, tmp_path):
    seeds = target.seeds()
    assert len(seeds) == len(set(seeds)) > 1
    for data in seeds:
        target.read(data, tmp_path)  # which raises what it finds wrong
