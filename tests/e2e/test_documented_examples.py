"""Every Python example of the README and the guides runs as it stands.

The blocks of a page run one after the other in one namespace, as a reader would paste them, in a
folder with small models and files under the names that they use. Only what would train for minutes
is cut short, at the place where a budget becomes a number of steps.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.e2e.documentation import ROOT, list_pages, read_blocks
from tests.e2e.documented_files import TEXTS, Shelf
from tests.exhaustive import mark_all_but

from bertkit.base.errors import MissingExtraError
from bertkit.checkpoints import bundled
from bertkit.recipes.finetune import run as finetuning
from bertkit.recipes.pretrain import run as pretraining
from bertkit.training import lifecycle
from bertkit_studies.baselines import run as baselines

NUM_STEPS = 3
LABELS = [0, 1, 0]
ADDRESS = "localhost:8080"


@dataclass(frozen=True)
class Given:
    """What the examples of a page take for granted.

    Attributes:
        files: names of models and files, each one of `MAKERS`.
        names: Python's names, and what they stand for.
        is_quick: whether a small model takes the place of the one that comes with bertkit.
        served: those models that a server at `ADDRESS` has.
    """

    files: tuple[str, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)
    is_quick: bool = False
    served: tuple[str, ...] = ()


GIVEN = {
    "README.md": Given(("reviews.csv", "story.txt"), is_quick=True),
    "docs/guide/answer.md": Given(("reader",)),
    "docs/guide/choose.md": Given(("endings",)),
    "docs/guide/classify.md": Given(("sentiment",)),
    "docs/guide/corpus.md": Given(("books", "tokenizer")),
    "docs/guide/embeddings.md": Given(
        ("all-MiniLM-L6-v2", "texts.txt"),
        {"endless_texts": iter(TEXTS), "texts": list(TEXTS) * 5, "labels": LABELS * 5},
    ),
    "docs/guide/explain.md": Given(("sentiment", "reviews.csv")),
    "docs/guide/export.md": Given(("sentiment", "minilm-onnx")),
    "docs/guide/features.md": Given(
        ("features.parquet", "bert-base"), {"endless_texts": iter(TEXTS)}
    ),
    "docs/guide/finetuning.md": Given(("train.csv",), is_quick=True),
    "docs/guide/generate.md": Given(("gpt",), {"texts": list(TEXTS)}),
    "docs/guide/geometry.md": Given(("all-MiniLM-L6-v2",)),
    "docs/guide/precision.md": Given(("minilm", "sentiment")),
    "docs/guide/predict.md": Given(("sentiment", "test.csv"), {"endless_texts": iter(TEXTS)}),
    "docs/guide/pretraining.md": Given(("shards",)),
    "docs/guide/python.md": Given(
        ("reviews.csv", "passages.jsonl", "report.txt", "gpt", "de-en"),
        {"texts": list(TEXTS)},
        is_quick=True,
    ),
    "docs/guide/regress.md": Given(("similarity",)),
    "docs/guide/rerank.md": Given(("reranker",)),
    "docs/guide/review.md": Given(("reviews.csv", "decisions.csv")),
    "docs/guide/score.md": Given(("run",)),
    "docs/guide/search.md": Given(
        ("notes/", "vectors.npy"),
        {
            "queries": np.ones((2, 384), np.float32),
            "frame": [{"number": 17 + one, "body": TEXTS[one], "lang": "de"} for one in range(2)],
        },
        is_quick=True,
    ),
    "docs/guide/serve.md": Given(
        ("all-MiniLM-L6-v2", "sentiment"), served=("all-MiniLM-L6-v2", "sentiment")
    ),
    "docs/guide/studies.md": Given(
        ("shards",),
        {
            "texts": list(TEXTS),
            "labels": LABELS,
            "other_texts": list(TEXTS),
            "other_labels": LABELS,
        },
    ),
    "docs/guide/summarize.md": Given(
        ("all-MiniLM-L6-v2",), {"text": TEXTS[0], "endless_texts": iter(TEXTS)}
    ),
    "docs/guide/tag.md": Given(("tagger",)),
    "docs/guide/tokenizer.md": Given(("tokenizer",)),
    "docs/guide/train-embeddings.md": Given(("pairs.csv",), is_quick=True),
    "docs/guide/translate.md": Given(("de-en", "texts.de")),
    "docs/guide/view.md": Given(("sentence-transformers/all-MiniLM-L6-v2", "sentiment", "de-en")),
}
# Its blocks run each in a process of its own: tests/unit/integrations/test_guide.py.
ELSEWHERE = "docs/guide/integrations.md"
EXAMPLES = {
    page: blocks
    for page in list_pages()
    if page != ELSEWHERE
    and (blocks := [one for one in read_blocks(page) if one.language == "python"])
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    return Shelf(tmp_path_factory.mktemp("documented"))


@pytest.fixture
def _short_runs(monkeypatch):
    """Budgets of minutes, and of thousands of steps, are a few steps."""
    for module in (pretraining, baselines):
        monkeypatch.setattr(module, "count_steps", lambda *_: NUM_STEPS)
    monkeypatch.setattr(lifecycle, "find_seconds", lambda *_: None)
    monkeypatch.setattr(finetuning, "decide_steps", lambda *_, **__: NUM_STEPS)


@pytest.mark.usefixtures("_short_runs")
@pytest.mark.filterwarnings("ignore:Using extra keyword arguments on `Field`")  # Ray Serve's own
@pytest.mark.parametrize("page", mark_all_but(["README.md", "docs/guide/python.md"], EXAMPLES))
def test_the_examples_of_a_page_run(page, shelf, tmp_path, monkeypatch):
    given = GIVEN.get(page, Given())
    if {"gpt", "de-en"} & set(given.files):
        pytest.importorskip("bertkit.decoders")
    shelf.lay_out(given.files, tmp_path)
    if given.is_quick:
        shelf.lay_out(["bundled"], tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(bundled, "PACKAGE", "bundled")
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        address = ADDRESS
        if given.served:
            pytest.importorskip("bertkit.serving")
            from tests.unit.serving.running import running

            server = stack.enter_context(running({name: name for name in given.served})).server
            address = f"127.0.0.1:{server.port}"
        run_blocks(page, {"__name__": "__main__", **given.names}, address)


def run_blocks(page: str, names: dict[str, Any], address: str) -> None:
    for block in EXAMPLES[page]:
        # blank lines before it, so that a traceback names the line of the page
        code = "\n" * (block.line - 1) + block.code.replace(ADDRESS, address)
        try:
            exec(compile(code, str(ROOT / page), "exec"), names)
        except (MissingExtraError, ModuleNotFoundError) as error:
            if str(getattr(error, "name", None)).startswith("bertkit"):
                raise
            pytest.skip(f"line {block.line}: {error}")


def test_nothing_is_given_that_no_example_uses():
    assert GIVEN.keys() <= EXAMPLES.keys()
    for page, given in GIVEN.items():
        code = "\n".join(block.code for block in EXAMPLES[page])
        assert [name for name in (*given.files, *given.names) if name not in code] == []
