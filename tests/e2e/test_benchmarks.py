"""Every benchmark runs at its smallest size, on small data sets and weights of our own."""

import csv
import gzip
import importlib.util
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from benchmarks import minilm
from tests.chromium import find_chromium
from tests.e2e.small import OBJECTS, SUBJECTS, VERBS, write_corpus
from tests.exhaustive import mark_all_but

NUM_EXAMPLES = {"train": 48, "dev": 16, "test": 16}
RTE_FILES = ("rte1_dev", "rte1_test", "rte2_dev", "rte2_test", "rte3_dev", "rte3_test")
LABELS = ("negative", "positive")
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
    "bench_contrastive": "--data {data} --sets stsb --seeds 0 --rounds 1 --steps 1"
    " --batch-size 4 --pairs 8 --parts 2",
    "bench_decode": "--data {data} --size tiny --texts 2 --tokens 2 --rounds 1",
    "bench_embed": "--data {data} --sets short --every 4 --rounds 1",
    "bench_explain": "--data {data} --rows 32 --texts 4",
    "bench_families": "--data {data} --families modernbert --sets short --size tiny --every 4"
    " --rounds 1",
    "bench_few_labels": "--data {data} --sets sst2 --counts 4 --draws 2 --ways solved"
    " --test-rows 30",
    "bench_fill_mask": "--data {data} --models tiny --texts 4 --rounds 1",
    "bench_finetune": "--data {data} --sets sst2 --rounds 1 --steps 1 --sides bertkit transformers",
    "bench_finetune_memory": "--data {data} --sets cola --precisions fp32 --rows 100",
    "bench_index": "--data {data} --rows 100 --changed 20 --queries 6 --letters 1 --rounds 1"
    " --sides bertkit",
    "bench_hybrid": "--data {data} --model {minilm} --rerank cranfield --pairs 8",
    "bench_label_errors": "--data {data} --sets sst2 wnut17 --rows 40 --sentences 30 --draws 1",
    "bench_load": "--model tiny --formats tensorflow --rounds 0",
    "bench_lora": "--data {data} --rows 32 --epochs 1 --seeds 1",
    "bench_memory": "--corpus {corpus} --workers 1 --data {shards} --models tiny --batch-size 2",
    "bench_overload": "--seconds 2 --soak-minutes 0.03",
    "bench_page": "--models tiny --lengths 16 --rounds 1",
    "bench_parts": "--megabytes 0.1 --texts 20 --files 2",
    "bench_precision": "--data {data}",
    "bench_predict": "--data {data} --tasks classify --lines 8 --rounds 1",
    "bench_prepare": "--data {data}/corpus/news --tokenizer {tokenizer} --rounds 1",
    "bench_pretrain": "--data {shards} --models tiny --lengths 16 --batch-size 2 --device cpu",
    "bench_quality": "--data {shards} --model tiny --minutes 0.001 --turns 1",
    "bench_query": "--data {data} --lengths 8 --queries 2 --repeats 1",
    "bench_ranks": "--data {shards} --models tiny --batch-size 4 --max-length 16 --steps 2"
    " --rounds 1",
    "bench_retrieval_training": "--data {data} --model {minilm} --folds 2 --measured 1 --epochs 1"
    " --max-length 16",
    "bench_repeats": "--data {data} --rows 20 --texts 30",
    "bench_rerank": "--data {data} --passages 4 --rounds 1",
    "bench_score": "--data {data} --pairs 1 --rounds 1",
    "bench_search": "--rows 1000 --rounds 1",
    "bench_selection": "--data {data} --sets sst2 --draws 2 --rounds 2 --labels 8",
    "bench_seq2seq_step": "--data {data}/parallel/multi30k --size 1x32 --steps 1"
    " --sides bertkit transformers",
    "bench_serve": "--data {data} --rounds 1 --sides bertkit --sets 16 --clients 1 --seconds 0.2"
    " --texts 20",
    "bench_small_data": "--data {data} --sets sst2 --counts 8 --ways default regression --seeds 1",
    "bench_start": "--rounds 1",
    "bench_step": "--data {shards} --models tiny --cases 128 --batch-size 2 --rounds 1"
    " --sides bertkit transformers",
    "bench_stream_memory": "--nums-texts 20 --forms jsonl",
    "bench_tasks": "--data {data} --tables sets --only wnut17 --seeds 1"
    " --systems bertkit transformers",
    "scale_tables": "--measure --data {shards} --models tiny --lengths 16 --shards 10"
    " --megabytes 1",
    "simulated_ranks": "--data {shards} --tokens 20000 --ranks 1 3 8 --per-rank 2 --lengths 16"
    " --shards 100 --windows 4",
    "bench_verdict": "--data {data} --model {minilm} --sets captions --ways real --draws 1"
    " --rows 24 --epochs 1",
    "bench_training_precision": "--data {shards} --model tiny --steps 1 --seeds 0 --batch-size 2"
    " --max-length 16 --simulate",
}
PACKAGES = {
    "bench_embed": ("ctranslate2", "openvino"),
    "bench_label_errors": ("cleanlab",),
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
    "bench_explain": {"captum"},  # which isn't installed
    "bench_finetune": {"peak_memory_bytes"},  # came later
    "bench_seq2seq_step": {"peak_memory_bytes"},  # came later
    "bench_precision": {  # of models that were fine-tuned
        *("sst2_accuracy", "sst2_changed", "wnut17_f1", "wnut17_changed"),
    },
    "bench_quality": {"sooner"},  # null where nothing is learned
    "bench_serve": {"fastapi", "litserve", "infinity"},  # sides that weren't measured
    "bench_start": {"environments"},  # which need the network
    "bench_step": {"losses", "peak_memory_bytes", "sequences"},  # came later
    "bench_tasks": {"recipe", "accuracy", "exact_match", "matthews"},  # of other cells
}
OF_THE_PAGE_ON_SCALE = {"scale_tables", "simulated_ranks"}
NEEDS_WORDS = ("bench_page",)  # whose words are a token each
LIMIT_SECONDS = 300  # of one that hangs


def write_benchmark_data(data: Path) -> None:
    """Write each set that a benchmark reads."""
    for seed, (part, count) in enumerate(NUM_EXAMPLES.items()):
        write_part(data / "tasks", part, [*islice(draw_sentences(seed), count)])
    sentences = draw_sentences(3)
    for name in RTE_FILES:
        pairs = [
            f'<pair value="{value}"><t>{next(sentences)}</t><h>{next(sentences)}</h></pair>'
            for value in ("YES", "NO") * 8
        ]
        write(data / "tasks" / "rte" / f"{name}.xml", f"<corpus>{''.join(pairs)}</corpus>")
    write_inference_sets(data)


def draw_sentences(seed: int) -> Iterator[str]:
    """Sentences without end, few of them alike."""
    choose = random.Random(seed).choice
    while True:
        parts = (choose(words) for words in (SUBJECTS, VERBS, OBJECTS, VERBS, SUBJECTS))
        yield "{} {} {} and {} {}".format(*parts)


def write_part(tasks: Path, part: str, sentences: list[str]) -> None:
    """One part of each set for fine-tuning, of the same sentences."""
    rows = [[text, LABELS[number % 2]] for number, text in enumerate(sentences)]
    write(tasks / "sst2" / f"{part}.csv", list_rows(["text", "label"], *rows))
    lines = [f"{text}\t{number % 2}\n" for number, text in enumerate(sentences)]
    write(tasks / "cola" / f"{part}.tsv", "".join(lines))
    tagged = ["".join(f"{word}\t{tag_word(word)}\n" for word in text.split()) for text in sentences]
    write(tasks / "wnut17" / f"{part}.conll", "\n".join(tagged))
    questions = [
        {"id": f"{part}-{number}", "question": "who was it?", "answers": [find_answer(text)]}
        for number, text in enumerate(sentences)
    ]
    paragraphs = [
        {"context": text, "qas": [question]}
        for text, question in zip(sentences, questions, strict=True)
    ]
    content = {"version": "1.1", "data": [{"title": part, "paragraphs": paragraphs}]}
    write(tasks / "squad" / f"{part}.json", json.dumps(content))


def tag_word(word: str) -> str:
    """Persons are tagged."""
    return "B-person" if word in ("captain", "doctor", "friend", "sister") else "O"


def find_answer(text: str) -> dict[str, object]:
    """The last word."""
    word = text.rsplit(maxsplit=1)[-1]
    return {"text": word, "answer_start": len(text) - len(word)}


def write_inference_sets(data: Path) -> None:
    """Texts without labels, pairs and judgments."""
    sentences = draw_sentences(5)
    documents = ["\n".join(f"{text}." for text in islice(sentences, 6)) for _ in range(40)]
    write(data / "corpus" / "news" / "news.txt.gz", "\n\n".join(documents))
    write(data / "corpus" / "books" / "book.txt.gz", "\n\n".join(documents))
    for name in ("train.de", "train.en", "test_2016_flickr.de"):
        lines = "\n".join(islice(sentences, 80))
        write(data / "parallel" / "multi30k" / f"{name}.gz", lines + "\n")
    pairs = [{"sentence_good": next(sentences), "sentence_bad": next(sentences)} for _ in range(4)]
    write(data / "tasks" / "blimp" / "pairs.jsonl.gz", list_json(pairs))
    for part, num_pairs in (("test", 5), ("train", 48)):
        rows = [
            [next(sentences), next(sentences), f"{number % 6}.0"] for number in range(num_pairs)
        ]
        table = list_rows(["sentence1", "sentence2", "score"], *rows)
        write(data / "tasks" / "stsb" / "en" / f"{part}.csv.gz", table)
    cranfield = data / "retrieval" / "cranfield"
    texts = [{"id": str(number), "title": "", "text": next(sentences)} for number in range(12)]
    write(cranfield / "corpus.jsonl.gz", list_json(texts))
    queries = [{"id": str(number), "text": next(sentences)} for number in range(10)]
    write(cranfield / "queries.jsonl", list_json(queries))
    judged = [f"{number}\t{number}\t1" for number in range(10)]
    write(cranfield / "qrels.tsv", "\n".join(["query-id\tcorpus-id\tscore", *judged, ""]))


def list_rows(*rows: list[str]) -> str:
    """A table as CSV."""
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


def list_json(rows: list[dict[str, str]]) -> str:
    """An object a line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path, text: str) -> None:
    """Write a file with its folders, packed where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


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
