"""A figure that a page shows has a command that is kept, and a result that is kept."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
FOLDERS = ("docs", "examples", "models", "studies")
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [
        *ROOT.glob("*.md"),
        *(page for one in FOLDERS for page in (ROOT / one).rglob("*.md")),
    ]
    if path.name != "CHANGELOG.md" and "_build" not in path.parts
)
FORGOTTEN = re.compile(r"\b(?:script|run|program)s?\b[^.|]{0,20}\b(?:isn't|aren't|not) kept")
PROGRAM = re.compile(r"benchmarks/(\w+\.py|results/[\w.-]+\.jsonl?)")
COMMAND = re.compile(r"python benchmarks/bench_(\w+)\.py")
# pages say what these compare, and show no figures of theirs
WITHOUT_FIGURES = {"overload", "training_precision"}


def find_forgotten(text: str) -> list[str]:
    """Where a page cites what nobody can run again."""
    return [match.group() for match in FORGOTTEN.finditer(re.sub(r"\s+", " ", text))]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_cites_only_programs_and_results_that_are_kept(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert find_forgotten(text) == []
    assert [name for name in PROGRAM.findall(text) if not (BENCHMARKS / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_result_of_a_benchmark_that_a_page_cites_is_kept(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    cited = set(COMMAND.findall(text)) - WITHOUT_FIGURES
    assert {name for name in cited if not list(RESULTS.glob(f"{name}[.-]*"))} == set()


@pytest.mark.parametrize(
    "text",
    [
        "2.4 s (a script that isn't kept)",
        "by scripts that\naren't kept",
        "on a busy machine (script not kept)",
        "13.4 s for another layer (a run that isn't kept)",
    ],
)
def test_a_script_that_is_not_kept_is_found(text):
    assert find_forgotten(text) != []
