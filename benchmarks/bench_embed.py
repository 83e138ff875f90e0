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
sentence-transformers. `bertkit` and `openvino` run in the precision that each takes by itself,
which is bf16 on many processors that have it; other precisions stand behind a side's name.
OpenVINO's int8 is its own quantization (NNCF), which looks at 300 reviews.

On a GPU bertkit and sentence-transformers run in float32 and in bf16 (weights too), and no others;
`--times` has each text so many times, as a GPU needs more to do than a round of a CPU.

Of the process as a whole is set: OMP_WAIT_POLICY=PASSIVE, unless it is set already, so that a
side's idle threads take nothing from the next one, and torch's two threads. No side changes the
allocator. Speed is in real tokens per second, [CLS] and [SEP] included and padding not.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import numpy as np

from bertkit.inference.settings import EngineName, PrecisionName
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
    load_embedder,
    plan_like_sentence_transformers,
    plan_padded,
    quantize_openvino,
    share_of_padding,
)
from minilm import find_minilm
from program import build_parser, list_versions, write_figures
from text_sets import read_reviews, read_set
from turns import begin_table, compare_rates, fastest, format_row, show_ratio, take_turns

DEFAULT_BATCH_SIZE = 32  # of sentence-transformers
SETS = ("short", "paragraphs", "mix")
IN_FP32, IN_BF16, IN_INT8 = ", fp32", ", bf16", ", int8"  # behind the name of a side
OURS: dict[str, tuple[EngineName, PrecisionName]] = {
    "bertkit": ("auto", "auto"),
    "bertkit" + IN_FP32: ("openvino", "fp32"),
    "bertkit" + IN_INT8: ("openvino", "int8"),
    "bertkit, PyTorch": ("torch", "fp32"),
    "bertkit, PyTorch" + IN_BF16: ("torch", "bf16"),
}
THEIRS, THEIRS_AT_BEST = "sentence-transformers", "sentence-transformers, best batch"
PADDED = (
    "onnxruntime",
    "openvino",
    "openvino" + IN_FP32,
    "openvino" + IN_INT8,
    "ctranslate2" + IN_FP32,
    "ctranslate2" + IN_INT8,
)
SIDES = (*OURS, THEIRS, THEIRS_AT_BEST, THEIRS_AT_BEST + IN_BF16, *PADDED)
SIDES_ON_GPU = [
    *(name for name, (engine, _) in OURS.items() if engine == "torch"),
    *(THEIRS, THEIRS_AT_BEST, THEIRS_AT_BEST + IN_BF16),
]
BATCH_SIZES = {"cpu": (8, 16, 32, 64, 128), "cuda": (64, 128, 256, 512, 1024)}
PACKAGES = ("ctranslate2", "nncf", "onnxruntime", "openvino", "sentence-transformers", "tokenizers")
EVERY_NTH = 5
NUM_CALIBRATION = 300  # texts that OpenVINO's quantization looks at, as in sentence-transformers
MAX_DIFFERENCE = 1e-4

Embed = Callable[[Sequence[str]], Floats]
EmbedInBatches = Callable[[Sequence[str], int], Floats]  # with a batch size or a token budget


def main() -> None:
    parser = build_parser(__doc__, "embed.json", rounds=5)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--sides", nargs="+", choices=SIDES)
    parser.add_argument(
        "--every", type=int, default=1, help="take only every so manieth text, for a try"
    )
    parser.add_argument("--times", type=int, default=1, help="how often each text is there")
    Place.add_device(parser)
    arguments = parser.parse_args()
    place = Place.begin(arguments.device)
    folder = find_minilm()
    names = SIDES_ON_GPU if place.is_gpu else [*(arguments.sides or SIDES), THEIRS]
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        calibration = read_reviews(arguments.data)[-NUM_CALIBRATION:]
        sides = list(dict.fromkeys(names))
        fixed, sized = build_sides(folder, Path(scratch), sides, place, calibration)
        for name in arguments.sets:
            texts = read_set(arguments.data, name)[:: arguments.every] * arguments.times
            result = measure(texts, fixed, sized, arguments.rounds, place, Tokenizer.load(folder))
            results.append({"set": name, **result})
            print(describe(results[-1]), flush=True)
            machine = {**place.describe(), **list_versions(*PACKAGES)}
            write_figures(arguments.output, machine, results=results)


def build_sides(
    folder: Path,
    scratch: Path,
    names: Sequence[str],
    place: Place,
    calibration: Sequence[str],
) -> tuple[dict[str, Embed], dict[str, EmbedInBatches]]:
    """The sides that need nothing but texts, and those for which a size is to be chosen."""
    theirs = build_sentence_transformers(folder, place)
    fixed: dict[str, Embed] = {
        **{name: load_embedder(folder, *OURS[name], place) for name in OURS if name in names},
        THEIRS: lambda texts: theirs(texts, DEFAULT_BATCH_SIZE),
    }
    exported = scratch / "exported.onnx"
    if not set(PADDED).isdisjoint(names):
        export_onnx(folder, exported)
    runtimes = {
        "onnxruntime": partial(build_onnx_runtime, exported, folder),
        "openvino": partial(build_openvino, exported),
        "openvino" + IN_FP32: partial(build_openvino, exported, "f32"),
        "openvino" + IN_INT8: partial(quantize_openvino, exported, folder, calibration),
        "ctranslate2" + IN_FP32: partial(build_ctranslate2, folder, scratch / "f", "float32"),
        "ctranslate2" + IN_INT8: partial(build_ctranslate2, folder, scratch / "i", "int8"),
    }
    in_bf16 = replace(place, precision="bf16")
    builders: dict[str, Callable[[], EmbedInBatches]] = {
        THEIRS_AT_BEST: lambda: theirs,
        THEIRS_AT_BEST + IN_BF16: partial(build_sentence_transformers, folder, in_bf16),
        **{name: partial(build_padded, folder, build) for name, build in runtimes.items()},
    }
    return fixed, {name: build() for name, build in builders.items() if name in names}


def build_padded(folder: Path, build: Callable[[], Any]) -> PaddedPeer:
    return PaddedPeer(Tokenizer.load(folder), build())


def measure(
    texts: Sequence[str],
    fixed: dict[str, Embed],
    sized: dict[str, EmbedInBatches],
    rounds: int,
    place: Place,
    tokenizer: Tokenizer,
) -> dict[str, Any]:
    """Choose sizes, compare vectors, take turns."""
    some = texts[::EVERY_NTH]
    sizes = {}
    for name, side in sized.items():
        tried = TOKEN_BUDGETS if name in PADDED else BATCH_SIZES[place.device.type]
        sizes[name] = fastest({size: partial(side, some, size) for size in tried})
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
    ours = [name for name in runs if name in OURS]
    return {
        "texts": len(texts),
        "tokens": sum(lengths),
        "rounds": rounds,
        "sizes": sizes,
        "padding": {name: share_of_padding(lengths, plan) for name, plan in padding.items()},
        "agreement": agreement,
        **compare_rates(seconds, sum(lengths), "tokens", ours, list(runs)),
        "seconds": seconds,
    }


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
        is_rounded = name in {"bertkit", "openvino"} or name.endswith((IN_BF16, IN_INT8))
        if agreement[name]["difference"] > MAX_DIFFERENCE and not is_rounded:
            raise SystemExit(f"{name} gives other vectors: {agreement[name]}")
    return agreement


def describe(result: dict[str, Any]) -> str:
    ours = list(result["ratios"])
    lines = [
        f"{result['set']}: {result['texts']:,} texts, {result['tokens']:,} tokens",
        "",
        begin_table("side", "tokens/s", *(f"{name} is" for name in ours), "padding", "size"),
    ]
    for name, speed in result["tokens_per_second"].items():
        ratios = [result["ratios"][one].get(name) for one in ours]
        padding = result["padding"].get(name)
        cells = ["–" if one is None else show_ratio(one) for one in ratios]
        cells += ["–" if padding is None else f"{padding:.0%}", str(result["sizes"].get(name, "–"))]
        lines.append(format_row(name, f"{speed:,.0f}", *cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
