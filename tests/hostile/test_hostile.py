"""Every folder of the hostile suite is refused by its own error, or accepted as documented.

Nothing in it runs, leaves its folder, takes over 300 MB beside the files, or computes for over
15 s, three times what docs/security.md promises: a machine may be slow.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.hostile.watched import run_modules
from tests.waiting import MAX_SECONDS

MAX_EXTRA_BYTES = 300_000_000
MAX_CASES_OF_A_DEFECT = 20
MIN_DEFECTS, MIN_CASES = 200, 1000  # as docs/security.md says
MODULES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*_files.py")))

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is measured through /proc")
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of each case."""
    return run_modules(tmp_path_factory.mktemp("hostile"), ",".join(MODULES))


def test_the_first_file_of_each_format_is_refused(tmp_path):
    rows = run_modules(tmp_path, ",".join(f"{module}:1" for module in MODULES))
    assert len(rows) == len(MODULES)
    assert not [row for row in rows if row["problem"]]


@pytest.mark.exhaustive
def test_each_case_comes_to_its_own_error_or_is_accepted(outcomes):
    problems = [f"{row['name']}: {row['problem']}" for row in outcomes if row["problem"]]
    assert not problems, "\n".join(problems)


@pytest.mark.exhaustive
def test_no_case_takes_much_time_or_memory(outcomes):
    assert not [row for row in outcomes if row["seconds"] > MAX_SECONDS]
    assert not [row for row in outcomes if row["extra_bytes"] > MAX_EXTRA_BYTES]


@pytest.mark.exhaustive
def test_there_are_many_defects_and_not_many_cases_of_each(outcomes, capsys):
    counts = Counter(row["defect"] for row in outcomes)
    slowest = max(outcomes, key=lambda row: row["seconds"])
    largest = max(outcomes, key=lambda row: row["extra_bytes"])
    with capsys.disabled():
        sys.stdout.write(
            f"\nhostile: {len(outcomes)} folders of {len(counts)} defects; the slowest"
            f" {slowest['seconds']:.1f} s ({slowest['name']}), the largest"
            f" {largest['extra_bytes'] / 1e6:,.0f} MB beside its files ({largest['name']})\n"
        )
    assert len(counts) >= MIN_DEFECTS
    assert len(outcomes) >= MIN_CASES
    assert max(counts.values()) <= MAX_CASES_OF_A_DEFECT


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("bug", "module", "defect", "problem"),
    [
        ("no header limit", "safetensors_files", "header larger", "should be UnsafeFileError"),
        ("header is run", "safetensors_files", "metadata", "brought about os.system"),
        ("names lead anywhere", "folder_files", "out of the folder", "was accepted"),
    ],
)
def test_a_planted_bug_shows(bug, module, defect, problem, tmp_path):
    found = run_modules(tmp_path, module, bug, defect)
    assert found
    assert any(problem in row["problem"] for row in found)


@pytest.mark.exhaustive
def test_memory_that_is_taken_shows(tmp_path):
    found = run_modules(tmp_path, "safetensors_files", "takes memory", "metadata")
    assert min(row["extra_bytes"] for row in found) > MAX_EXTRA_BYTES
