"""A figure that a page shows has a command that is kept, and a result that is kept."""

import json
import re
from pathlib import Path
from typing import Any

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
PROGRAM = re.compile(r"benchmarks/(\w+\.py|results/[\w.-]+\.jsonl?)")
COMMAND = re.compile(r"python benchmarks/bench_(\w+)\.py")
ENCODE = "sentence-transformers"
# pages say what these compare, and show no figures of theirs
WITHOUT_FIGURES = {"overload", "pretrain", "training_precision"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_cites_only_programs_and_results_that_are_kept(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in PROGRAM.findall(text) if not (BENCHMARKS / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_result_of_a_benchmark_that_a_page_cites_is_kept(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    cited = set(COMMAND.findall(text)) - WITHOUT_FIGURES
    assert {name for name in cited if not list(RESULTS.glob(f"{name}[.-]*"))} == set()


def read_result(name: str) -> list[dict[str, Any]]:
    """The rows of a kept result."""
    rows = json.loads((RESULTS / name).read_text(encoding="utf-8"))["results"]
    assert isinstance(rows, list)
    return rows


def list_embedding(side: str, peer: str) -> list[float]:
    ratios = [row["ratios"][side] for row in read_result("embed.json")]  # one of each set
    return [one[peer]["ratio"] for one in ratios]


def find_step(model: str, peer: str) -> float:
    rows = [
        row for row in read_result("step.json") if (row["model"], row["case"]) == (model, "128")
    ]
    return float(rows[0]["peers"][peer]["ratio"])


def list_accuracies(system: str) -> list[float]:
    rows = map(json.loads, (RESULTS / "tasks.jsonl").read_text("utf-8").splitlines())
    cell = {"set": "sst2", "system": system, "encoder": "minilm", "count": None, "head": None}
    found = [row["metrics"]["accuracy"] for row in rows if row["cell"].items() >= cell.items()]
    assert len(found) == 3
    return sorted(100 * value for value in found)


def span(values: list[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low}–{high}"


def test_the_benchmarks_of_the_readme_are_those_of_kept_results():
    usual = {one: span(list_embedding("bertkit", one)) for one in ("openvino", ENCODE)}
    exact = {
        one: span(list_embedding("bertkit, fp32", one))
        for one in ("onnxruntime", "openvino, fp32", ENCODE)
    }
    steps = {one: f"{find_step(one, 'transformers'):.1f} ×" for one in ("base", "mini", "tiny")}
    tuned = read_result("finetune-sst2.json")[0]["sides"]
    filled = read_result("fill_mask.json")[0]["ratios"]["bertkit"]
    prepared = {row["side"]: row for row in read_result("prepare.json")}
    served = {
        row["tokens"]: row["sides"] for row in read_result("serve.json") if row["clients"] == 64
    }
    answered = {
        tokens: sides["bertkit"]["requests_per_second"]["median"]
        / sides["fastapi"]["requests_per_second"]["median"]
        for tokens, sides in served.items()
    }
    shares = {name: list_accuracies(name) for name in ("bertkit", "transformers")}
    expected = [
        f"**{usual[ENCODE]} ×** as fast, {usual['openvino']} ×",
        f"[{exact[ENCODE]} ×; {exact['onnxruntime']} ×, {exact['openvino, fp32']} ×]",
        f"**{steps['base']}** `base`, {steps['mini']} `mini`, {steps['tiny']} `tiny`",
        ", ".join(f"{find_step(model, 'kept'):.1f}" for model in ("base", "mini", "tiny")),
        f"**{tuned['transformers']['ratio']['ratio']:.1f} ×**;",
        f"{tuned['grouped']['ratio']['ratio']:.1f} × if `Trainer` groups",
        *(f"{median:.1f} % ({low:.1f}–{high:.1f})" for low, median, high in shares.values()),
        f"{filled['defaults']['ratio']:.0f} ×; {filled['best']['ratio']:.0f} × at",
        f"[{prepared['bertkit']['ratio']:.1f} ×](docs/performance.md#preparation)",
        f"{answered['16']:.1f} × as many with 16 tokens, {answered['128']:.1f} × with 128",
    ]
    table = (ROOT / "README.md").read_text("utf-8").partition("## Benchmarks")[2]
    assert [one for one in expected if one not in table] == []
