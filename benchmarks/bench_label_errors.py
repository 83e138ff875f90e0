"""How many exchanged labels a review finds, beside cleanlab on the same probabilities.

    python benchmarks/bench_label_errors.py --sets sst2 authors wnut17 --draws 10

Each draw exchanges 5 % and 20 % of the labels: of 1,000 rows of SST-2; of 1,000 sentences of six
authors, each half predicted from the other book of each author; in so many sentences of WNUT-17 a
tag. All are predicted by scikit-learn's logistic regression on the vectors of the bundled encoder,
in five folds. Figures, means over draws with their standard deviation:

- average precision, with the exchanged labels as the truth, of our order, of cleanlab's three, and
  of those that were tried and not taken: a score adjusted by class, neighbors mixed in, four fold
  splits averaged, and a second pass without the rows that look wrong;
- the number of errors: ours before and after the check by planted errors, and cleanlab's;
- the share found at the cut: as the planted errors say, and the true one; the precision there, and
  how far off it is if the number of errors were taken for the true one, so that both shares were
  the same: a review prints none unless that is under 0.1;
- how many times as likely a named label is wrong as any: as the planted errors say, and in truth;
- processor seconds and peak memory of the judgment alone, for random probabilities.

SST-2 and WNUT-17 have wrong labels of their own, which count as right here. The neighbors of an
author's sentence may be of its own book, which its layer hasn't read, so that they gain more there
than they would elsewhere.
"""

import json
import math
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import bertkit
from author_sets import BOOKS, read_authors
from bertkit.data.tables.records import open_records
from bertkit.recipes.review.encoder import computed_rows, load_encoder
from bertkit.recipes.review.judgment import list_labels
from bertkit.recipes.review.label_errors import (
    Ids,
    LabelErrors,
    Numbers,
    check_errors,
    compare,
    find_label_errors,
    group_errors,
    plant_errors,
)
from bertkit.recipes.review.rows import read_rows
from bertkit.recipes.review.run import ENOUGH_PLANTED, MOST_ROUNDS, PLANTED_SHARE
from bertkit.recipes.review.settings import ReviewSettings, choose_settings
from minilm import find_minilm
from program import build_parser, list_versions, write_figures
from task_sets import keep_some, prepare_set, read_part
from turns import begin_table, format_row

SETS = ("sst2", "authors", "wnut17")
SHARES = (0.05, 0.2)
PLANTED_SEED = 1000
NUM_FOLDS, NUM_NEIGHBORS, NUM_SPLITS = 5, 10, 4
SIZES = ((100_000, 10), (10_000, 100))  # rows and classes of random probabilities
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class LabeledVectors:
    """Labels with the vectors that they are predicted from.

    Attributes:
        folds: of each row, where they are given.
        owners: the row of each label.
    """

    vectors: Vectors
    labels: Ids
    owners: Ids
    folds: Ids | None = None

    @property
    def num_rows(self) -> int:
        return int(self.owners[-1]) + 1

    @property
    def is_tagged(self) -> bool:
        return self.num_rows < len(self.labels)


def main() -> None:
    parser = build_parser(__doc__, "label_errors.json")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--sentences", type=int, default=200, help="of WNUT-17")
    parser.add_argument("--draws", type=int, default=10)
    given = parser.parse_args()
    versions = list_versions("cleanlab", "scikit-learn")
    figures, costs = [], [measure_costs(*size) for size in SIZES]
    print(json.dumps(costs, indent=1))
    for name in given.sets:
        number = given.sentences if name == "wnut17" else given.rows
        labeled = read_set(given.data, name, number)
        for share in SHARES:
            draws = [measure(labeled, share, seed) for seed in range(given.draws)]
            figures.append({"set": name, "share": share, **summarize(draws)})
            print("\n".join(show(figures[-1])), flush=True)
            write_figures(given.output, versions, sets=figures, costs=costs)


def read_set(data: Path, name: str, number: int) -> LabeledVectors:
    with tempfile.TemporaryDirectory() as scratch:
        if name == "wnut17":
            return read_tags(data, number, Path(scratch))
        folds = None
        if name == "authors":
            each = max(1, number // (2 * len(BOOKS)))
            books = [read_authors(data, each, held_out=is_other) for is_other in (False, True)]
            rows = [row for book in books for row in book]
            folds = np.repeat([0, 1], [len(book) for book in books])
        else:
            task_set = prepare_set(data, name, Path(scratch))
            some = keep_some(task_set, number, 0, Path(scratch))
            rows = [(one["text"], one["label"]) for one in read_part(some, "train")]
    labels = np.unique([label for _, label in rows], return_inverse=True)[1]
    vectors = np.asarray(bertkit.embed([text for text, _ in rows], model=find_minilm()))
    return LabeledVectors(vectors, labels, np.arange(len(rows)), folds)


def read_tags(data: Path, number: int, folder: Path) -> LabeledVectors:
    """The words of sentences, each with the hidden state of its first piece."""
    some = np.random.default_rng(0)
    sentences = read_part(prepare_set(data, "wnut17", folder), "train")
    chosen = some.permutation(len(sentences))[:number]
    path = folder / "sentences.jsonl"
    path.write_text("".join(json.dumps(sentences[each]) + "\n" for each in chosen), "utf-8")
    settings = ReviewSettings()
    table = open_records(path, settings)
    rows = read_rows(table, choose_settings(table, settings, {}))
    task, model, tokenizer = load_encoder(find_minilm(), rows)
    rows.labeled.encode(task, tokenizer)
    with computed_rows(rows, task, model) as computed:
        encoded, features = computed.frozen.examples, computed.features
        words = [
            features.rows[features.find_rows([place])][one.alignment[1]]
            for place, one in enumerate(encoded)
        ]
        given = list_labels(task, encoded)
        return LabeledVectors(np.concatenate(words), given.ids, given.owners)


def measure(labeled: LabeledVectors, share: float, seed: int) -> dict[str, float]:
    """The figures of one draw."""
    labels, is_wrong = plant_errors(labeled.labels, share, seed, labeled.owners)
    probabilities = predict(labeled, labels)
    errors = find_label_errors(probabilities, labels)
    found = {"accuracy": float((probabilities.argmax(axis=1) == labeled.labels).mean())}
    scores = {
        "ours": errors.suspicion,
        **score_by_cleanlab(probabilities, labels),
        **try_others(labeled, labels, probabilities, errors),
    }
    for name, score in scores.items():
        found[f"precision of {name}"] = float(average_precision_score(is_wrong, score))
    if labeled.is_tagged:
        found |= score_sentences(labeled, labels, probabilities, is_wrong)
    from cleanlab.count import num_label_issues

    found["labels, confident learning"] = float(errors.num_errors)
    found["labels, cleanlab"] = float(num_label_issues(labels, probabilities))
    return found | check(labeled, labels, errors, is_wrong, PLANTED_SEED * (1 + seed))


def predict(
    labeled: LabeledVectors, labels: Ids, seed: int = 0, is_kept: NDArray[np.bool_] | None = None
) -> Numbers:
    """Out-of-fold probabilities, by layers on the rows that are kept."""
    folds = labeled.folds
    if folds is None:
        folds = np.random.default_rng(seed).permutation(labeled.num_rows) % NUM_FOLDS
    fold = folds[labeled.owners]
    found = np.zeros((len(labels), int(labels.max()) + 1))
    for number in np.unique(folds):
        inside = fold != number if is_kept is None else (fold != number) & is_kept
        if len(np.unique(labels[inside])) < 2:  # of few rows; nothing can be learned
            found[fold == number] = 1 / found.shape[1]
            continue
        model = LogisticRegression(max_iter=100, tol=1e-3)
        model.fit(labeled.vectors[inside], labels[inside])
        outside = np.flatnonzero(fold == number)
        found[np.ix_(outside, model.classes_)] = model.predict_proba(labeled.vectors[outside])
    return found


def score_by_cleanlab(probabilities: Numbers, labels: Ids) -> dict[str, Numbers]:
    from cleanlab.rank import get_label_quality_scores

    ways = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
    return {
        f"cleanlab {way}": -get_label_quality_scores(labels, probabilities, method=way)
        for way in ways
    }


def try_others(
    labeled: LabeledVectors, labels: Ids, probabilities: Numbers, errors: LabelErrors
) -> dict[str, Numbers]:
    """The scores that were tried and not taken; of rows with one label alone."""
    if labeled.is_tagged:
        return {}
    num_classes = probabilities.shape[1]
    own = [probabilities[labels == label, label].mean() for label in range(num_classes)]
    nearness = labeled.vectors @ labeled.vectors.T
    np.fill_diagonal(nearness, -np.inf)
    nearest = labels[np.argsort(-nearness, axis=1)[:, :NUM_NEIGHBORS]]
    neighbors = np.stack([(nearest == each).mean(axis=1) for each in range(num_classes)], axis=1)
    repeated = [predict(labeled, labels, seed) for seed in range(NUM_SPLITS)]
    second = predict(labeled, labels, is_kept=~errors.is_error)
    tried = {
        "adjusted by class": probabilities / own,
        "neighbors mixed in": 0.8 * probabilities + 0.2 * neighbors,
        "four splits": np.mean(repeated, axis=0),
        "second pass": second,
    }
    scores = {name: find_margins(values, labels) for name, values in tried.items()}
    other = probabilities[np.arange(len(labels)), errors.likely]
    log_odds = np.log(other) - np.log(probabilities[np.arange(len(labels)), labels])
    return scores | {"margin of logarithms without doubt": log_odds}


def find_margins(values: Numbers, labels: Ids) -> Numbers:
    rows, others = np.arange(len(labels)), values.copy()
    others[rows, labels] = -np.inf
    return compare(others.max(axis=1), values[rows, labels])


def score_sentences(
    labeled: LabeledVectors, labels: Ids, probabilities: Numbers, is_wrong: NDArray[np.bool_]
) -> dict[str, float]:
    from cleanlab.token_classification.rank import get_label_quality_scores

    stops = np.flatnonzero(np.diff(labeled.owners)) + 1
    given = [part.tolist() for part in np.split(labels, stops)]
    peer, _ = get_label_quality_scores(given, np.split(probabilities, stops))
    truth = np.bincount(labeled.owners, is_wrong) > 0
    ours, _ = group_errors(
        find_label_errors(probabilities, labels), labeled.owners, labeled.num_rows
    )
    return {
        "precision of ours, by sentence": float(average_precision_score(truth, ours.suspicion)),
        "precision of cleanlab, by sentence": float(average_precision_score(truth, -peer)),
    }


def check(
    labeled: LabeledVectors,
    labels: Ids,
    errors: LabelErrors,
    is_wrong: NDArray[np.bool_],
    seed: int,
) -> dict[str, float]:
    """Counts, and what planted errors say of the errors found, beside the truth."""
    owners, num_rows = labeled.owners, labeled.num_rows
    num_rounds = min(MOST_ROUNDS, math.ceil(ENOUGH_PLANTED / (PLANTED_SHARE * num_rows)))
    suspicion, in_check = list[Numbers](), list[NDArray[np.bool_]]()
    for each in range(num_rounds):
        changed, is_planted = plant_errors(labels, PLANTED_SHARE, seed + each, owners)
        again = find_label_errors(predict(labeled, changed), changed)
        suspicion.append(group_errors(again, owners, num_rows)[0].suspicion)
        in_check.append(np.bincount(owners, is_planted) > 0)
    rows, _ = group_errors(errors, owners, num_rows)
    truth = np.bincount(owners, is_wrong) > 0
    checked, planted = check_errors(rows, np.concatenate(suspicion), np.concatenate(in_check))
    number, share = checked.num_errors, planted.num_found / max(1, planted.number)
    precision = float((checked.is_error & truth).sum() / max(1, number))
    return {
        "times as likely, by planted errors": planted.lift,
        "times as likely, true": precision / float(truth.mean()),
        "errors, true": float(truth.sum()),
        "errors, confident learning": float(rows.num_errors),
        "errors, checked": float(number),
        "found, by planted errors": share,
        "found, true": float((checked.is_error & truth).sum() / truth.sum()),
        "precision, true": precision,
        "precision, off by": abs(precision - share),
    }


def summarize(draws: Sequence[dict[str, float]]) -> dict[str, Any]:
    values = {name: [draw[name] for draw in draws] for name in draws[0]}
    means = {name: round(float(np.mean(each)), 4) for name, each in values.items()}
    spreads = {name: round(float(np.std(each)), 4) for name, each in values.items()}
    return {"draws": len(draws), "means": means, "spreads": spreads}


def show(figure: dict[str, Any]) -> list[str]:
    lines = [begin_table(f"{figure['set']}, {figure['share']:.0%} exchanged", "mean", "spread")]
    for name, mean in figure["means"].items():
        lines.append(format_row(name, f"{mean:.3f}", f"{figure['spreads'][name]:.3f}"))
    return lines


def measure_costs(num_rows: int, num_classes: int) -> dict[str, Any]:
    """Processor seconds and peak memory of the judgment, ours and cleanlab's on one process."""
    from cleanlab.filter import find_label_issues

    generator = np.random.default_rng(0)
    labels = generator.integers(0, num_classes, num_rows)
    probabilities = generator.dirichlet(np.full(num_classes, 0.3), num_rows)
    sides: dict[str, Callable[[], object]] = {
        "bertkit": lambda: find_label_errors(probabilities, labels).ranking,
        "cleanlab": lambda: find_label_issues(
            labels, probabilities, return_indices_ranked_by="normalized_margin", n_jobs=1
        ),
    }
    costs = {name: measure_cost(judge) for name, judge in sides.items()}
    return {"rows": num_rows, "classes": num_classes, **costs}


def measure_cost(judge: Callable[[], object]) -> dict[str, float]:
    seconds = []
    for _ in range(3):
        start = time.process_time()
        judge()
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    judge()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"cpu_seconds": round(float(np.median(seconds)), 4), "peak_megabytes": peak / 1e6}


if __name__ == "__main__":
    main()
