"""Every benchmark runs at its smallest size, on small data sets and weights of our own."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks import minilm
from tests.chromium import find_chromium
from tests.e2e.benchmark_data import write_benchmark_data
from tests.e2e.small import write_corpus
from tests.exhaustive import mark_all_but

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
# The flags of each benchmark; names in braces are folders.
SMALLEST = {
    "bench_decode": "--data {data} --size tiny --texts 2 --tokens 2 --rounds 1",
    "bench_embed": "--data {data} --sets short --every 4 --rounds 1",
    "bench_fill_mask": "--data {data} --models tiny --texts 4 --rounds 1",
    "bench_finetune": "--data {data} --sets sst2 --rounds 1 --steps 1 --sides bertkit transformers",
    "bench_finetune_memory": "--data {data} --sets cola --precisions fp32 --rows 100",
    "bench_load": "--model tiny --formats tensorflow --rounds 0",
    "bench_memory": "--corpus {corpus} --workers 1 --data {shards} --models tiny --batch-size 2",
    "bench_overload": "--seconds 2 --soak-minutes 0.03",
    "bench_page": "--models tiny --lengths 16 --rounds 1",
    "bench_parts": "--megabytes 0.1 --texts 20 --files 2",
    "bench_precision": "--data {data}",
    "bench_predict": "--data {data} --tasks classify --lines 8 --rounds 1",
    "bench_prepare": "--data {data}/corpus/news --tokenizer {tokenizer} --rounds 1",
    "bench_pretrain": "--data {shards} --models tiny --lengths 16 --batch-size 2 --device cpu",
    "bench_quality": "--data {shards} --model tiny --minutes 0.001 --turns 1",
    "bench_query": "--data {data} --lengths 8 --queries 2 --repeats 1 --starts 1",
    "bench_ranks": "--data {shards} --models tiny --batch-size 4 --max-length 16 --steps 2"
    " --rounds 1",
    "bench_score": "--data {data} --pairs 1 --rounds 1",
    "bench_search": "--rows 1000 --rounds 1",
    "bench_seq2seq_step": "--data {data}/parallel/multi30k --size 1x32 --steps 1"
    " --sides bertkit transformers",
    "bench_serve": "--data {data} --rounds 1 --sides bertkit --sets 16 --clients 1 --seconds 0.2"
    " --texts 20",
    "bench_small_data": "--data {data} --sets sst2 --counts 8 --ways default regression --seeds 1",
    "bench_step": "--data {shards} --models tiny --cases 128 --batch-size 2 --rounds 1"
    " --sides bertkit transformers",
    "bench_stream_memory": "--nums-texts 20 --forms jsonl",
    "bench_tasks": "--data {data} --tables sets --only wnut17 --seeds 1"
    " --systems bertkit transformers",
    "scale_tables": "--measure --data {shards} --models tiny --lengths 16 --shards 10"
    " --megabytes 1",
    "simulated_ranks": "--data {shards} --tokens 20000 --ranks 1 3 8 --per-rank 2 --lengths 16"
    " --shards 100 --windows 4",
    "bench_training_precision": "--data {shards} --model tiny --steps 1 --seeds 0 --batch-size 2"
    " --max-length 16 --simulate",
}
PACKAGES = {
    "bench_embed": ("ctranslate2", "openvino"),
    "bench_parts": ("ray",),
    "bench_search": ("faiss",),
}
# Keys that name a side, not a figure; not every side runs at the smallest size.
SIDES = {
    *("bertkit", "transformers", "kept", "grouped", "compiled"),
    *("ctranslate2", "onnxruntime", "openvino"),
}
# Keys that may stand in one only of a committed result and of what a run writes.
DIFFERENT = {
    "bench_finetune": {"peak_memory_bytes"},  # came later
    "bench_seq2seq_step": {"peak_memory_bytes"},  # came later
    "bench_quality": {"sooner"},  # null where nothing is learned
    "bench_search": {  # a side that wasn't measured
        *("approximate", "approximate_to_faiss", "approximate_to_numpy"),
        *("build_seconds", "num_probes", "own_recall"),
    },
    "bench_serve": {"fastapi", "litserve", "infinity"},  # sides that weren't measured
    "bench_step": {"losses", "peak_memory_bytes", "sequences"},  # came later
    "bench_tasks": {"recipe", "accuracy", "exact_match", "matthews"},  # of other cells
}
OF_THE_PAGE_ON_SCALE = {"scale_tables", "simulated_ranks"}
NEEDS_WORDS = ("bench_page",)  # whose words are a token each
LIMIT_SECONDS = 300  # of one that hangs


@pytest.fixture(scope="module")
def folders(tmp_path_factory, workshop):
    folder = tmp_path_factory.mktemp("benchmarks")
    write_benchmark_data(folder / "data")
    (folder / "corpus").mkdir()
    write_corpus(folder / "corpus" / "text.txt", 40)
    minilm.write_stand_in(folder / "minilm", workshop / "tokenizer", SMALL)
    return {
        "data": folder / "data",
        "corpus": folder / "corpus",
        "minilm": folder / "minilm",
        "shards": workshop / "shards",
        "tokenizer": workshop / "tokenizer",
    }


def test_every_benchmark_has_a_smallest_size():
    found = {path.stem for path in (ROOT / "benchmarks").glob("bench_*.py")}
    assert SMALLEST.keys() == found | OF_THE_PAGE_ON_SCALE


@pytest.mark.parametrize("name", mark_all_but(["bench_search"], SMALLEST))
def test_a_benchmark_runs_at_its_smallest_size(name, folders, tmp_path):
    missing = [package for package in PACKAGES.get(name, ()) if not has(package)]
    if missing or (name == "bench_page" and find_chromium() is None):
        pytest.skip(f"not installed: {', '.join(missing) or 'Chromium'}")
    words = SMALLEST[name].format(**folders).split()
    output = tmp_path / "figures.json"
    stand_in = {minilm.VARIABLE: str(folders["minilm"])}
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", *words, "--output", str(output)],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1", **({} if name in NEEDS_WORDS else stand_in)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    written = list_figures(output.read_text("utf-8"))
    assert written
    for committed in list_results(name):
        found = written ^ list_figures(committed.read_text("utf-8"))
        different = {key for key in found if DIFFERENT.get(name, set()).isdisjoint(key.split("/"))}
        assert not different, committed.name


def test_every_committed_result_is_of_a_benchmark():
    committed = [path for path in RESULTS.iterdir() if path.is_file()]
    assert sorted(committed) == sorted(path for name in SMALLEST for path in list_results(name))


def test_figures_are_told_apart_by_their_keys():
    row = {"side": "kept", "peers": {"kept": {"low": 1}, "kept, bf16": {"low": 2}}}
    figures = {"rows", "rows/side", "rows/peers", "rows/peers/*", "rows/peers/*/low"}
    assert list_figures(json.dumps({"machine": {"cores": 2}, "rows": [row, row]})) == figures
    assert list_figures('{"low": 1}\n{"ratio_low": 1}\n') == {"low", "ratio_low"}


def list_results(name: str) -> list[Path]:
    """The committed results of a benchmark; `finetune-sst2.json` is one of `bench_finetune`."""
    stem = name.removeprefix("bench_").removesuffix("_tables")
    return [path for path in RESULTS.glob("*.json*") if path.stem.partition("-")[0] == stem]


def list_figures(text: str) -> set[str]:
    """The keys of all figures with those above them, without the machine and the call."""
    try:
        contents = [json.loads(text)]
    except ValueError:  # a row a line
        contents = [json.loads(line) for line in text.splitlines()]
    return {path for content in contents for path in list_paths(content)}


def list_paths(content: Any, above: str = "") -> Iterator[str]:
    if isinstance(content, list):
        for each in content:
            yield from list_paths(each, above)
    elif isinstance(content, dict):
        for key in content.keys() - {"machine", "arguments"}:
            path = above + ("*" if key in SIDES or not key.isidentifier() else key)
            yield path
            yield from list_paths(content[key], f"{path}/")


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
