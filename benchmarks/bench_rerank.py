"""How many passages a reranker orders in a second, beside sentence-transformers' CrossEncoder.

    python benchmarks/bench_rerank.py --data data/ --rounds 5

The first queries of Cranfield with 1,000 of its abstracts each, cut to 256 tokens; all-MiniLM-L6-v2
with a head of one output as it was drawn, since the speed doesn't depend on what it has learned.
From texts to their order, on two threads, all in one process and in turns; a round is one query
with all its passages by each side. bertkit computes with OpenVINO and with PyTorch in float32,
and as it comes (`auto`: its fastest engine and precision); CrossEncoder with its defaults, at the
best of five batch sizes, and at that in bfloat16. Values are compared first, in float32.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import torch
from sentence_transformers import CrossEncoder

from bertkit import BertForSequenceClassification, Reranker, Tokenizer
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.task import Rerank
from bertkit.tasks.saved import save_task
from devices import Place
from minilm import find_minilm
from program import build_parser, list_versions, write_figures
from search_sets import read_cranfield
from turns import begin_table, compare_rates, describe_rates, fastest, take_turns

DEFAULTS, BEST, HALF = "CrossEncoder", "CrossEncoder, best batch", "CrossEncoder, best batch, bf16"
AUTO = "bertkit, auto"
MAX_DIFFERENCE = 1e-4
SHARE_TRIED = 4  # of the passages, every so many, to find the best batch size


def main() -> None:
    parser = build_parser(__doc__, "rerank.json", rounds=5)
    parser.add_argument("--passages", type=int, default=1000)
    parser.add_argument("--max-length", type=int, default=256)
    Place.add_device(parser)
    arguments = parser.parse_args()
    place = Place.begin(arguments.device)
    judged = read_cranfield(arguments.data)
    query, *_ = judged.queries.values()
    texts = [*islice(judged.documents.values(), arguments.passages)]
    with tempfile.TemporaryDirectory() as scratch:
        model = save_reranker(Path(scratch) / "reranker", arguments.max_length)
        result = measure(model, query, texts, arguments.rounds, place)
    print(begin_table("passages", "side", "speed", *(f"beside {name}" for name in PEERS)))
    print("\n".join(describe_rates(str(len(texts)), result, "pairs")), flush=True)
    machine = {**place.describe(), **list_versions("openvino", "sentence-transformers")}
    write_figures(arguments.output, machine, results=[result])


PEERS = (DEFAULTS, BEST, HALF)


def save_reranker(folder: Path, max_length: int) -> Path:
    """all-MiniLM-L6-v2 with a new head on [CLS], which a CrossEncoder reads as it stands."""
    torch.manual_seed(0)
    task = Rerank(RerankSettings(max_length=max_length))
    model = BertForSequenceClassification.from_pretrained(
        find_minilm(), new_heads=True, **task.config_changes
    )
    model.save_pretrained(folder)
    Tokenizer.load(find_minilm()).save(folder, max_length=max_length)
    save_task(folder, task)
    return folder


def measure(model: Path, query: str, texts: list[str], rounds: int, place: Place) -> dict[str, Any]:
    """Compare values, choose the batch size, take turns."""
    ours = place.load_ours(Reranker.load, model)
    ours[AUTO] = Reranker.load(model, device=str(place.device))
    load = partial(CrossEncoder, str(model), device=str(place.device))
    theirs, half = load(), load(model_kwargs={"dtype": torch.bfloat16})
    pairs = [(query, text) for text in texts]
    expected = theirs.predict(pairs)
    for name, reranker in ours.items():
        found = {one.row: one.score for one in reranker.rank(query, texts)}
        difference = max(abs(found[row] - value) for row, value in enumerate(expected.tolist()))
        if name != AUTO and difference > MAX_DIFFERENCE * max(1.0, abs(expected).max()):
            raise SystemExit(f"{name} gives other values: {difference:.1e}")
    some = texts[::SHARE_TRIED]
    tried = {size: partial(theirs.rank, query, some, batch_size=size) for size in place.batch_sizes}
    best = fastest(tried, 2)
    sides: dict[str, Callable[[], object]] = {
        **{name: partial(reranker.rank, query, texts) for name, reranker in ours.items()},
        DEFAULTS: partial(theirs.rank, query, texts),
        BEST: partial(theirs.rank, query, texts, batch_size=best),
        HALF: partial(half.rank, query, texts, batch_size=best),
    }
    seconds = take_turns(sides, rounds, num_uncounted=0)  # all have run before
    return {
        "passages": len(texts),
        "rounds": rounds,
        "best_batch_size": best,
        **compare_rates(seconds, len(texts), "pairs", list(ours), PEERS),
        "seconds": seconds,
    }


if __name__ == "__main__":
    main()
