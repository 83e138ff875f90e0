"""docs/scale.md: its tables, what it says about many ranks, and its example of Ray Serve."""

import importlib
import json
import socket
import sys
from dataclasses import replace
from urllib.request import Request, urlopen

import pytest
from tests.closeness import assert_close, close
from tests.e2e.documentation import ROOT, read_blocks
from tests.e2e.documented_files import TEXTS, save_sentence_encoder

from bertkit import Embedder
from bertkit.data.shards import ShardSet

PAGE = "docs/scale.md"
OF_BENCHMARKS = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
RANKS = (1, 3, 8)
BATCH_SIZE = 16


@pytest.fixture(scope="module")
def benchmarks():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield
        for name in OF_BENCHMARKS:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def simulation(benchmarks):
    return importlib.import_module("simulated_ranks")


@pytest.fixture(scope="module")
def planner(simulation, workshop):
    data = ShardSet.open(workshop / "shards")
    shards = simulation.draw_corpus(30_000, 3_000)
    return simulation.Planner.over(shards, data.load_tokenizer(), max_length=32)


def forget_last(examples, num_ranks):
    size = len(examples) // (num_ranks + (num_ranks > 1))
    return [list(examples[rank * size : (rank + 1) * size]) for rank in range(num_ranks)]


def repeat_first(examples, num_ranks):
    return [[examples[0], *examples[rank::num_ranks]] for rank in range(num_ranks)]


def deal_out(examples, num_ranks):
    return [list(examples[rank::num_ranks]) for rank in range(num_ranks)]


@pytest.mark.parametrize("cut", [forget_last, repeat_first, deal_out])
def test_a_wrong_division_among_ranks_is_found(cut, simulation, planner):
    simulation.check_epoch(planner, RANKS, BATCH_SIZE)
    with pytest.raises(AssertionError, match="ranks change what a step has"):
        simulation.check_epoch(planner, RANKS, BATCH_SIZE, cut)


def test_an_order_that_is_not_shuffled_is_found(simulation, planner):
    found = simulation.check_shuffling(planner, BATCH_SIZE)
    assert found["mean_distance"] == close(1 / 3, within=0.03)
    with pytest.raises(AssertionError, match="isn't shuffled"):
        simulation.check_shuffling(replace(planner, is_shuffled=False), BATCH_SIZE)
    with pytest.raises(AssertionError, match="isn't shuffled"):
        simulation.check_shuffling(planner.with_window(10_000), BATCH_SIZE)


@pytest.mark.usefixtures("benchmarks")
def test_the_tables_of_the_page_are_those_of_the_results():
    page = (ROOT / PAGE).read_text("utf-8")
    tables = importlib.import_module("scale_tables")
    assert tables.fill_in(page) == page, "run benchmarks/scale_tables.py --write docs/scale.md"
    assert {found[2] for found in tables.MARK.finditer(page)} == tables.build_tables().keys()


@pytest.mark.usefixtures("benchmarks")
def test_a_block_keeps_as_much_as_the_page_computes():
    tables = importlib.import_module("scale_tables")
    (row,) = tables.measure_blocks(("tiny",), (128,))
    assert row["bytes_per_token"] == tables.compute_on_cpu(tables.find_sizes("tiny"))


def test_two_replicas_answer_like_the_pipeline(tmp_path, request):
    serve = pytest.importorskip("ray.serve")
    request.getfixturevalue("ray_cluster")  # started only for what is installed
    save_sentence_encoder(tmp_path / "encoder")
    (block,) = (one for one in read_blocks(PAGE) if one.language == "python")
    names = {"__name__": "__main__"}
    exec(block.code, names)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(names["Vectors"].bind(str(tmp_path / "encoder")))
        (application,) = serve.status().applications.values()
        assert application.deployments["Vectors"].replica_states == {"RUNNING": 2}
        answers = [ask(port, text) for text in TEXTS]
    finally:
        serve.shutdown()
    expected = Embedder.load(tmp_path / "encoder")(list(TEXTS))
    assert_close(answers, expected)


def ask(port: int, text: str) -> list[float]:
    headers = {"Content-Type": "application/json"}
    request = Request(f"http://127.0.0.1:{port}", json.dumps(text).encode(), headers)
    with urlopen(request, timeout=60) as response:
        return json.loads(response.read())
