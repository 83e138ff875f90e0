"""Embedding real texts beside what people use and what is fastest.

    python benchmarks/bench_embed.py --data data/ --rounds 5
    python benchmarks/bench_embed.py --data data/ --rounds 5 --times 10 --device cuda

all-MiniLM-L6-v2 on a CPU, two threads for each side, all in one process, in turns: a round is the
whole set once by each side, begun by another side each time. The sets (`text_sets.py`) are 2,000
short sentences, 400 paragraphs, and a shuffled mix of both. Every side gets texts and gives
normalized vectors: tokenizing, sorting, padding and pooling are counted. The peers and what is put
around them stand in `embedding_peers.py`. sentence-transformers runs at its default batch size and
at the best of five, in float32 and in bf16, the others at the best of four token budgets, found for
each set on every fifth text before; the vectors of these are compared with those of
sentence-transformers. OpenVINO runs in float32 and in the precision that it takes by itself, which
is bf16 where the processor has it.

On a GPU bertkit and sentence-transformers run in float32 and in bf16 (weights too), and no others;
`--times` has each text so many times, as a GPU needs more to do than a round of a CPU.

Of the process as a whole is set: OMP_WAIT_POLICY=PASSIVE, unless it is set already, so that a
side's idle threads take nothing from the next one, and torch's two threads. No side changes the
allocator. Speed is in real tokens per second, [CLS] and [SEP] included and padding not.
"""

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import numpy as np
import torch
import transformers

from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.settings import EngineName, Precision
from bertkit.models.bert.config import BertConfig
from bertkit.tokenization.tokenizer import Tokenizer
from devices import Place
from embedding_peers import (
    TOKEN_BUDGETS,
    Floats,
    PaddedPeer,
    build_ctranslate2,
    build_onnx_runtime,
    build_openvino,
    build_sentence_transformers,
    encode,
    export_onnx,
    plan_like_sentence_transformers,
    plan_padded,
    share_of_padding,
)
from minilm import MINILM, find_minilm
from program import build_parser, write_figures
from text_sets import read_set
from turns import fastest, show_ratio, summarize, take_turns

NUM_THREADS = 2
DEFAULT_BATCH_SIZE = 32  # of sentence-transformers
SETS = ("short", "paragraphs", "mix")
OURS: dict[str, tuple[EngineName, Precision]] = {
    "bertkit": ("torch", "fp32"),
    "bertkit[onnx]": ("onnx", "fp32"),
    "bertkit, bf16": ("torch", "bf16"),
    "bertkit[onnx], int8": ("onnx", "int8"),
}
THEIRS, THEIRS_AT_BEST = "sentence-transformers", "sentence-transformers, best batch"
IN_BF16 = ", bf16"  # behind the name of a side
PADDED = ("onnxruntime", "openvino", "openvino, default", "ctranslate2", "ctranslate2 int8")
SIDES = (*OURS, THEIRS, THEIRS_AT_BEST, THEIRS_AT_BEST + IN_BF16, *PADDED)
BATCH_SIZES = {"cpu": (8, 16, 32, 64, 128), "cuda": (64, 128, 256, 512, 1024)}
PACKAGES = ("ctranslate2", "onnxruntime", "openvino", "sentence-transformers", "tokenizers")
EVERY_NTH = 5
MAX_DIFFERENCE = 1e-4

Embed = Callable[[Sequence[str]], Floats]
EmbedInBatches = Callable[[Sequence[str], int], Floats]  # with a batch size or a token budget


def main() -> None:
    """Print tables, and write the figures as JSON after each set."""
    parser = build_parser(__doc__, "embed.json")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--sides", nargs="+", choices=SIDES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--every", type=int, default=1, help="take only every so manieth text, for a try"
    )
    parser.add_argument("--times", type=int, default=1, help="how often each text is there")
    Place.add_device(parser)
    arguments = parser.parse_args()
    place = Place.of(arguments.device, "fp32")
    torch.set_num_threads(NUM_THREADS)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = find_minilm()
    sides = list(dict.fromkeys([*(arguments.sides or SIDES), THEIRS]))
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        if place.is_gpu:
            fixed, sized = build_gpu_sides(folder, place)
        else:
            fixed, sized = build_sides(folder, Path(scratch), sides)
        for name in arguments.sets:
            texts = read_set(arguments.data, name)[:: arguments.every] * arguments.times
            result = measure(texts, fixed, sized, arguments.rounds, Tokenizer.load(folder))
            results.append({"set": name, **result})
            print(describe(results[-1]), flush=True)
            write(arguments.output, place, results)


def build_gpu_sides(
    folder: Path, place: Place
) -> tuple[dict[str, Embed], dict[str, EmbedInBatches]]:
    """What runs on a GPU, in float32 and in bf16."""
    fixed: dict[str, Embed] = {}
    sized: dict[str, EmbedInBatches] = {}
    precisions: dict[str, Literal["fp32", "bf16"]] = {"": "fp32", IN_BF16: "bf16"}
    for ending, precision in precisions.items():
        settings = EmbedderSettings(engine="torch", precision=precision, **MINILM)
        fixed[f"bertkit{ending}"] = Embedder.load(folder, settings, device=str(place.device))
        theirs = build_sentence_transformers(folder, replace(place, precision=precision))
        sized[THEIRS_AT_BEST + ending] = theirs
        if not ending:
            fixed[THEIRS] = partial(embed_in_batches, theirs)
    return fixed, sized


def embed_in_batches(embed: EmbedInBatches, texts: Sequence[str]) -> Floats:
    """At the default batch size."""
    return embed(texts, DEFAULT_BATCH_SIZE)


def build_sides(
    folder: Path, scratch: Path, names: Sequence[str]
) -> tuple[dict[str, Embed], dict[str, EmbedInBatches]]:
    """The sides that need nothing but texts, and those for which a size is to be chosen."""
    fixed: dict[str, Embed] = {}
    for name, (engine, precision) in OURS.items():
        if name in names:
            settings = EmbedderSettings(engine=engine, precision=precision, **MINILM)
            fixed[name] = Embedder.load(folder, settings, device="cpu")
    theirs = build_sentence_transformers(folder, Place.of("cpu", "fp32"))
    fixed[THEIRS] = partial(embed_in_batches, theirs)
    sized: dict[str, EmbedInBatches] = {THEIRS_AT_BEST: theirs}
    if (in_bf16 := THEIRS_AT_BEST + IN_BF16) in names:
        sized[in_bf16] = build_sentence_transformers(folder, Place.of("cpu", "bf16"))
    exported = scratch / "exported.onnx"
    export_onnx(folder, exported)
    config = BertConfig.from_dict(json.loads((folder / "config.json").read_text("utf-8")), folder)
    builders = {
        "onnxruntime": partial(build_onnx_runtime, exported, config, NUM_THREADS),
        "openvino": partial(build_openvino, exported, NUM_THREADS, "f32"),
        "openvino, default": partial(build_openvino, exported, NUM_THREADS, None),
        "ctranslate2": partial(build_ctranslate2, folder, scratch / "f", "float32", NUM_THREADS),
        "ctranslate2 int8": partial(build_ctranslate2, folder, scratch / "i", "int8", NUM_THREADS),
    }
    for name, build in builders.items():
        if name in names:
            sized[name] = PaddedPeer(Tokenizer.load(folder), build())
    return fixed, {name: side for name, side in sized.items() if name in names}


def measure(
    texts: Sequence[str],
    fixed: dict[str, Embed],
    sized: dict[str, EmbedInBatches],
    rounds: int,
    tokenizer: Tokenizer,
) -> dict[str, Any]:
    """Choose sizes, compare vectors, take turns."""
    some = texts[::EVERY_NTH]
    sizes = {
        name: fastest({size: partial(side, some, size) for size in list_sizes(name)})
        for name, side in sized.items()
    }
    vectors = {name: side(some) for name, side in fixed.items()}
    vectors |= {name: side(some, sizes[name]) for name, side in sized.items()}
    agreement = compare_vectors(vectors)
    runs: dict[str, Callable[[], Floats]] = {
        **{name: partial(side, texts) for name, side in fixed.items()},
        **{name: partial(side, texts, sizes[name]) for name, side in sized.items()},
    }
    seconds = take_turns(runs, rounds, num_uncounted=0)  # all have run before
    lengths = [len(ids) for ids in encode(tokenizer, texts)]
    padding = {THEIRS: plan_like_sentence_transformers(texts, DEFAULT_BATCH_SIZE)}
    padding |= {name: plan_padded(lengths, sizes[name]) for name in PADDED if name in sizes}
    return {
        "texts": len(texts),
        "tokens": sum(lengths),
        "rounds": rounds,
        "sizes": sizes,
        "padding": {name: share_of_padding(lengths, plan) for name, plan in padding.items()},
        "agreement": agreement,
        "tokens_per_second": {
            name: sum(lengths) / statistics.median(values) for name, values in seconds.items()
        },
        "ratios": {
            name: {peer: summarize(seconds[name], seconds[peer]) for peer in runs if peer != name}
            for name in runs
            if name.startswith("bertkit")
        },
        "seconds": seconds,
    }


def list_sizes(name: str) -> tuple[int, ...]:
    """What is tried for a side."""
    if not name.startswith(THEIRS_AT_BEST):
        return TOKEN_BUDGETS
    is_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return BATCH_SIZES["cuda" if is_gpu else "cpu"]


def compare_vectors(vectors: dict[str, Floats]) -> dict[str, dict[str, float]]:
    """How far each side is from sentence-transformers; int8 and bf16 alone may be farther."""
    agreement = {}
    for name, found in vectors.items():
        cosines = (found * vectors[THEIRS]).sum(axis=1)
        agreement[name] = {
            "difference": float(np.abs(found - vectors[THEIRS]).max()),
            "mean_cosine": float(cosines.mean()),
            "lowest_cosine": float(cosines.min()),
        }
        is_rounded = any(word in name for word in ("int8", IN_BF16, "default"))
        if agreement[name]["difference"] > MAX_DIFFERENCE and not is_rounded:
            raise SystemExit(f"{name} gives other vectors: {agreement[name]}")
    return agreement


def describe(result: dict[str, Any]) -> str:
    """A result as a Markdown table, a side a row."""
    ours = list(result["ratios"])
    lines = [
        f"{result['set']}: {result['texts']:,} texts, {result['tokens']:,} tokens",
        "",
        f"| side | tokens/s | {' | '.join(f'{name} is' for name in ours)} | padding | size |",
        f"| --- | --- | {' | '.join('---' for _ in ours)} | --- | --- |",
    ]
    for name, speed in result["tokens_per_second"].items():
        ratios = [result["ratios"][one].get(name) for one in ours]
        padding = result["padding"].get(name)
        cells = [
            name,
            f"{speed:,.0f}",
            *("–" if one is None else show_ratio(one) for one in ratios),
        ]
        cells += ["–" if padding is None else f"{padding:.0%}", str(result["sizes"].get(name, "–"))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write(path: Path, place: Place, results: list[dict[str, Any]]) -> None:
    """Write the figures with machine and versions."""
    versions = {name: version(name) for name in PACKAGES if find_spec(name.replace("-", "_"))}
    write_figures(path, {**place.describe(), **versions}, results=results)


if __name__ == "__main__":
    main()
