"""Pseudo log-likelihoods of sentences beside a plain loop with transformers.

    python benchmarks/bench_score.py --data data/ --pairs 200 --rounds 5

Both sentences of every so-many-th pair of BLiMP, scored by the model that comes with bertkit. Two
peers, both with BertForMaskedLM of transformers: the loop as it is written in most places (a batch
has the masked copies of one sentence), and the same copies of all sentences, sorted by length, in
the fastest of some batch sizes, which is found before. Later pieces of a masked word are masked,
too. All load the same folder and get the sentences as text; the sums are compared first. One
process, two threads, in turns, float32; bertkit in bf16 is a side of its own.
"""

import os
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import torch
import transformers

from bertkit.checkpoints.bundled import find_bundled
from bertkit.inference.settings import Precision
from bertkit.inference.text_scorer import TextScorer
from devices import Place
from program import build_parser, write_figures
from text_sets import read_jsonl
from turns import begin_table, compare_rates, describe_rates, fastest, format_row, take_turns

BATCH_SIZES = (16, 32, 64, 128, 256)
MAX_DIFFERENCE = 1e-5  # of a sum, as a share of the largest one
OURS: dict[str, Precision] = {"bertkit": "fp32", "bertkit, bf16": "bf16"}
PEERS = ("sentence by sentence", "best batches")

Copy = tuple[int, list[int], int, int]  # sentence, ids with [MASK]s, place, label
Sums = list[float]


def main() -> None:
    parser = build_parser(__doc__, "score.json", rounds=5)
    parser.add_argument("--pairs", type=int, default=200)
    arguments = parser.parse_args()
    Place.begin()
    texts = read_sentences(arguments.data / "tasks" / "blimp" / "pairs.jsonl.gz", arguments.pairs)
    result = compare(str(find_bundled("words")), texts, arguments.rounds)
    print(describe(result))
    write_figures(arguments.output, result=result)


def read_sentences(path: Path, num_pairs: int) -> list[str]:
    """Both sentences of pairs from all of the file."""
    rows = read_jsonl(path)
    chosen = islice(rows, 0, None, max(1, len(rows) // num_pairs))
    return [row[name] for row in chosen for name in ("sentence_good", "sentence_bad")]


def compare(folder: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """Agreement first, then batch sizes, then rounds in turns."""
    ours = {name: TextScorer.load(folder, precision=value) for name, value in OURS.items()}
    theirs = PlainLoop(folder)
    expected = theirs.score_each(texts)
    scores = ours["bertkit"](texts)
    difference = max(
        abs(one.log_probability - other) for one, other in zip(scores, expected, strict=True)
    )
    if difference > MAX_DIFFERENCE * max(1.0, *map(abs, expected)):
        raise SystemExit(f"the sums differ by up to {difference:.1e}")
    candidates: dict[int, Callable[[], Sums]] = {
        size: partial(theirs.score_sorted, texts, size) for size in BATCH_SIZES
    }
    batch_size = fastest(candidates)
    seconds = take_turns(
        {
            **{name: partial(score, texts) for name, score in ours.items()},
            PEERS[0]: partial(theirs.score_each, texts),
            PEERS[1]: candidates[batch_size],
        },
        rounds,
    )
    return {
        "texts": len(texts),
        "tokens_per_text": statistics.mean(one.num_tokens for one in scores),
        "rounds": rounds,
        "difference": difference,
        "batch_size": batch_size,
        **compare_rates(seconds, len(texts), "texts", list(OURS), PEERS),
    }


class PlainLoop:
    """The peer: masked copies of sentences through transformers."""

    def __init__(self, folder: str) -> None:
        self.model = transformers.BertForMaskedLM.from_pretrained(folder, dtype=torch.float32)
        self.model.eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def score_each(self, texts: list[str]) -> Sums:
        """A batch has the copies of one sentence."""
        return [
            sum(self._score(list(self._mask(number, text)))) for number, text in enumerate(texts)
        ]

    def score_sorted(self, texts: list[str], batch_size: int) -> Sums:
        """Batches of copies of one length or nearly so."""
        copies = [copy for number, text in enumerate(texts) for copy in self._mask(number, text)]
        copies.sort(key=lambda copy: len(copy[1]))
        sums = [0.0] * len(texts)
        for start in range(0, len(copies), batch_size):
            batch = copies[start : start + batch_size]
            for (number, *_), log in zip(batch, self._score(batch), strict=True):
                sums[number] += log
        return sums

    def _mask(self, number: int, text: str) -> Iterator[Copy]:
        encoding = self.tokenizer(text)
        ids, words = encoding["input_ids"], encoding.word_ids()
        tokens = self.tokenizer.convert_ids_to_tokens(ids)
        for place in range(1, len(ids) - 1):
            end = place + 1
            while words[end] is not None and tokens[end].startswith("##"):
                end += 1
            masked = [self.tokenizer.mask_token_id] * (end - place)
            yield number, [*ids[:place], *masked, *ids[end:]], place, ids[place]

    @torch.inference_mode()
    def _score(self, copies: list[Copy]) -> list[float]:
        inputs = self.tokenizer.pad(
            {"input_ids": [ids for _, ids, _, _ in copies]}, return_tensors="pt"
        )
        logits = self.model(**inputs).logits
        places = torch.tensor([place for _, _, place, _ in copies])
        labels = torch.tensor([label for *_, label in copies])
        rows = torch.arange(len(copies))
        logs: list[float] = logits[rows, places].log_softmax(dim=-1)[rows, labels].tolist()
        return logs


def describe(result: dict[str, Any]) -> str:
    size, difference = result["batch_size"], result["difference"]
    last = f"best batch {size}, greatest difference of a sum {difference:.0e}"
    return "\n".join(
        [
            begin_table("model", "side", "speed", *(f"beside {name}" for name in PEERS)),
            *describe_rates("words", result, "texts"),
            format_row("words", last, "", "", ""),
        ]
    )


if __name__ == "__main__":
    main()
