"""How long it takes to make and to open a page of attention views, and how large it is.

    python benchmarks/bench_page.py --rounds 5

Models of three sizes, texts of 16, 128 and 512 tokens, two threads. all-MiniLM-L6-v2 has its own
weights; tiny and Base have random ones, so large that attention is uneven, which is the worst case
for packing. Making is building, packing and writing the page from what one pass left behind, with
all views that need no further pass. Opening is from the start of navigation to the first lines of
the head view in headless Chromium, from a file in the system's cache; a layer and a token are then
chosen, each until the view has been drawn. Medians of all rounds, with the least and the most.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import torch
from playwright.sync_api import Page, sync_playwright
from tests.chromium import FLAGS, find_chromium

from bertkit.interpret.build import build_page
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.views.view import ViewInputs
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.reports.interactive import write_page
from bertkit.tokenization.tokenizer import Tokenizer
from minilm import find_minilm
from program import build_parser, write_figures
from turns import spread

MINILM = "MiniLM"
MODELS = ("tiny", MINILM, "base")
VIEWS = ("heads", "model", "neurons", "tokens", "geometry")
SENTENCE = "the animal did not cross the street because it was too tired and so we went home ."
UNEVEN_RANGE = 0.1  # of random weights
# resolves when the head view has been drawn and shown once more
CHOOSE = """async (selector) => {
  const start = performance.now();
  document.querySelector(selector).click();
  const canvas = document.querySelector(".head-lines canvas");
  await new Promise((resolve) => {
    new MutationObserver(resolve).observe(canvas, { attributeFilter: ["aria-label"] });
  });
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return (performance.now() - start) / 1000;
}"""


def main() -> None:
    parser = build_parser(__doc__, "page.json", data=None, rounds=5)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 128, 512], help="in tokens")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    results = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        for inspected in load_subjects(arguments.models):
            for length in arguments.lengths:
                page = browser.new_page()
                results.append(measure(inspected, length, Path(name), page, arguments.rounds))
                print(describe(results[-1]), flush=True)
                page.close()
        chromium = browser.version
        browser.close()
    write_figures(arguments.output, {"chromium": chromium}, results=results)


def load_subjects(names: Sequence[str]) -> Iterator[InspectedModel]:
    tokenizer = Tokenizer.load(find_minilm())
    torch.manual_seed(0)
    for name in names:
        if name == MINILM:
            model = InspectedModel.load(find_minilm(), "cpu").model
        else:
            model = BertModel(BertConfig.preset(name, initializer_range=UNEVEN_RANGE)).eval()
        yield InspectedModel(name, model, tokenizer)


def measure(
    inspected: InspectedModel, length: int, folder: Path, page: Page, rounds: int
) -> dict[str, Any]:
    words = (SENTENCE.split() * length)[: length - 2]
    inputs = ViewInputs(inspected, inspected.observe(inspected.read(" ".join(words))))
    assert len(inputs.observation.encoded.tokens) == length
    path = folder / "page.html"
    rows = [{"make_seconds": make(inputs, path), **open_page(page, path)} for _ in range(rounds)]
    config = inspected.model.config
    return {
        "model": inspected.name,
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "tokens": length,
        "bytes": path.stat().st_size,
        **{name: spread([row[name] for row in rows]) for name in rows[0]},
    }


def make(inputs: ViewInputs, path: Path) -> float:
    start = time.perf_counter()
    write_page(path, build_page(inputs, VIEWS))
    return time.perf_counter() - start


def open_page(page: Page, path: Path) -> dict[str, float]:
    """Seconds until the first lines, until those of the second layer, and of one token."""
    page.goto(path.as_uri(), wait_until="commit")
    page.locator(".head-lines canvas[aria-label]").wait_for()
    ready_seconds = page.evaluate("performance.now()") / 1000
    return {
        "open_seconds": ready_seconds,
        "layer_seconds": page.evaluate(CHOOSE, "[aria-label=Layer] button:nth-child(2)"),
        "token_seconds": page.evaluate(CHOOSE, ".tokens-from .token:nth-child(8)"),
    }


def describe(result: dict[str, Any]) -> str:
    name = f"{result['model']:>8} {result['layers']:>3} × {result['heads']:<3}"
    seconds = "  ".join(
        f"{part} {result[f'{part}_seconds']['median']:7.3f} s"
        for part in ("make", "open", "layer", "token")
    )
    return f"{name} {result['tokens']:>4} tokens  {result['bytes'] / 1e6:7.2f} MB  {seconds}"


if __name__ == "__main__":
    main()
