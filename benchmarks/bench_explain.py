"""Which words decided: `explain=True` beside Captum's integrated gradients on the same model.

    python benchmarks/bench_explain.py --rows 1000 --texts 300

A model is fine-tuned on rows of SST-2's training part with the defaults of `bertkit finetune
classify`, in fp32. For sentences of the test part, the three weightiest words of each side are
deleted from the text, and the model reads it again; `drop` is what the probability of the label
that was predicted loses, with the error of its mean. Sides:

- `leaving_out`: what bertkit does for texts of such lengths;
- `gradients`: what it does for long ones;
- `captum`: its `IntegratedGradients` over the output of the embeddings, 50 steps from [PAD], as in
  its tutorials; the target is the label's logit, and tokens are summed to the same words. Without
  Captum it is left out;
- `random`: three words at random.

`planted` is of two more models. In their sentences a word is put into a random place: in
`one_of_two` one of two words, which is the label, into each; in `present` the same word into every
other, and the label is whether it is there. The figure is the share of held-out sentences with a
word and the right label in which the word is named first, with the Wilson interval. Seconds are
wall and processor seconds a text in the mean, the sides one after the other for each text.
"""

import csv
import math
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bertkit.inference import explain
from bertkit.inference.explain_inputs import ReadInput, find_written_words
from bertkit.inference.gradients import score_embedded
from bertkit.inference.predictor import Classifier
from bertkit.inference.torch_model import find_network
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import pack_sequences
from bertkit.tasks.explanation import ExplainedWord
from bertkit.tasks.metrics.shares import wilson_interval
from program import build_parser, run_bertkit, write_figures

NUM_LEFT_OUT = 3
WORDS = {"one_of_two": ("orchard", "gravel"), "present": ("orchard", "")}
Weights = npt.NDArray[np.float64]
Side = Callable[[str], tuple[Sequence[ExplainedWord], Weights]]


def main() -> None:
    parser = build_parser(__doc__, "explain.json")
    parser.add_argument("--rows", type=int, default=1000, help="to train on; half of it, planted")
    parser.add_argument("--texts", type=int, default=300, help="to explain, in each part")
    given = parser.parse_args()
    train, test = (read_rows(given.data, part) for part in ("train", "test"))
    with tempfile.TemporaryDirectory() as scratch:
        model = finetune(Path(scratch) / "sst2", train[: given.rows])
        sides = compare_sides(model, [text for text, _ in test[: given.texts]])
        found = {}
        for name, words in WORDS.items():
            planted = [plant(text, words, seed) for seed, (text, _) in enumerate(train + test)]
            num_test = min(given.texts, len(test))
            model = finetune(Path(scratch) / name, planted[: given.rows // 2])
            found[name] = measure_planted(model, planted[-num_test:])
    write_figures(given.output, sides=sides, planted=found)


def read_rows(data: Path, part: str) -> list[list[str]]:
    """Texts with labels of SST-2, in a random order."""
    with (data / "tasks" / "sst2" / f"{part}.csv").open(newline="", encoding="utf-8") as stream:
        rows = [[row["text"], row["label"]] for row in csv.DictReader(stream)]
    random.Random(0).shuffle(rows)
    return rows


def finetune(folder: Path, rows: Sequence[Sequence[str]]) -> Classifier:
    """A model of these rows, loaded in fp32."""
    table = folder.with_suffix(".csv")
    with table.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("text", "label"), *rows])
    words = ("--train", table, "--output", folder, "--precision", "fp32")
    run_bertkit("finetune", "classify", *words)
    return Classifier.load(folder, precision="fp32")


def plant(text: str, choices: Sequence[str], seed: int) -> list[str]:
    """A text with one of some words at a random place, and the word as its label."""
    choose = random.Random(seed)
    words, word = text.split(), choose.choice(choices)
    words.insert(choose.randrange(len(words) + 1), word)
    return [" ".join(filter(None, words)), word or "none"]


def explain_ours(model: Classifier, cost: float) -> Side:
    """Explanations of bertkit, with the cost of gradients as given: 0 takes them always."""

    def side(text: str) -> tuple[Sequence[ExplainedWord], Weights]:
        with patch.object(explain, "GRADIENT_COST", cost):
            (found,) = model(text, explain=True).explanations
        return found.words, np.array([word.weight for word in found.words])

    return side


def explain_by_captum(model: Classifier) -> Side:
    """Captum's integrated gradients."""
    from captum.attr import IntegratedGradients

    tokenizer, network = model.loaded.tokenizer, find_network(model.engine)

    def side(text: str) -> tuple[Sequence[ExplainedWord], Weights]:
        example = model.task.make_example(text, "text")
        (encoded,) = model.task.encode([example], tokenizer)
        read = ReadInput.of(model.task, tokenizer, example, encoded)
        (owners,), (sequence,) = read.owners, encoded.sequences
        ids = [*sequence.ids]
        ids[1:-1] = [tokenizer.pad_id] * (len(ids) - 2)
        label = int(network.scores(PackedBatch.of(pack_sequences([sequence]))).argmax())

        def forward(embedded: Tensor) -> Tensor:
            batch = PackedBatch.of(pack_sequences([sequence] * len(embedded)))
            return score_embedded(network, embedded.flatten(0, 1), batch)

        with torch.no_grad():
            ends = [pack_sequences([sequence._replace(ids=one)]) for one in (sequence.ids, ids)]
            points = [network.encoder.embeddings(PackedBatch.of(one))[None] for one in ends]
        gradients = IntegratedGradients(forward).attribute(*points, target=label)
        tokens = gradients.sum(dim=-1)[0].detach().numpy()
        weights = np.zeros(len(read.words))
        for owner, value in zip(owners, tokens, strict=True):
            if owner >= 0:
                weights[owner] += value
        return read.words, weights

    return side


def draw_words() -> Side:
    """Words at random."""
    draw = np.random.default_rng(0)

    def side(text: str) -> tuple[Sequence[ExplainedWord], Weights]:
        spans = list(find_written_words(text))
        words = [ExplainedWord(text[slice(*span)], 0.0, "text", *span) for span in spans]
        return words, draw.random(len(words))

    return side


def compare_sides(model: Classifier, texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """The drop of each side, with the error of its mean, and its seconds a text."""
    sides = {
        "leaving_out": explain_ours(model, math.inf),
        "gradients": explain_ours(model, 0),
        "random": draw_words(),
    }
    if find_spec("captum"):
        sides["captum"] = explain_by_captum(model)
    drops: dict[str, list[float]] = {name: [] for name in sides}
    seconds = {name: np.zeros(2) for name in sides}
    for side in sides.values():
        side(texts[0])  # what is built at the first call
    for text in texts:
        for name, side in sides.items():
            begun = np.array([time.perf_counter(), time.process_time()])
            words, weights = side(text)
            seconds[name] += [time.perf_counter(), time.process_time()] - begun
            top = np.argsort(-weights, kind="stable")[:NUM_LEFT_OUT]
            drops[name].append(measure_drop(model, text, [words[place] for place in top]))
    return {name: describe_side(drops, seconds[name] / len(texts), name) for name in sides}


def measure_drop(model: Classifier, text: str, left_out: Sequence[ExplainedWord]) -> float:
    """What the probability of the predicted label loses without some words."""
    found, rest = model(text), text
    for word in sorted(left_out, key=lambda word: -word.start):
        rest = rest[: word.start] + rest[word.stop :]
    return found.probability - model(rest).probabilities[found.label]


def describe_side(
    drops: dict[str, list[float]], seconds: npt.NDArray[np.float64], name: str
) -> dict[str, float]:
    """Figures of a side; `ahead` is by how much leaving words out drops more, in pairs."""
    own, ahead = np.array(drops[name]), np.array(drops["leaving_out"]) - drops[name]
    figures = {"texts": len(own), "drop": own.mean(), "error": find_error(own)}
    figures |= {"ahead": ahead.mean(), "ahead_error": find_error(ahead)}
    figures |= {"seconds": seconds[0], "processor_seconds": seconds[1]}
    return {key: round(float(value), 5) for key, value in figures.items()}


def find_error(values: npt.NDArray[np.float64]) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def measure_planted(model: Classifier, rows: Sequence[Sequence[str]]) -> dict[str, object]:
    """How often the planted word is named first where the label is right."""
    is_first = []
    answers = model([text for text, _ in rows], explain=True)
    for (_, word), found in zip(rows, answers, strict=True):
        (one,) = found.explanations
        if found.label == word != "none":
            is_first.append(bool(one.named) and one.words[one.named[0]].text == word)
    low, high = wilson_interval(float(np.mean(is_first)), len(is_first))
    return {
        "texts": len(rows),
        "right": len(is_first),
        "first": sum(is_first),
        "interval": [round(low, 4), round(high, 4)],
    }


if __name__ == "__main__":
    main()
