"""How many labels are needed where a way chooses which rows of a pool to label next.

    python benchmarks/bench_selection.py --draws 10 --rounds 7

Each draw takes 3,000 rows of a set as the pool and 50 of them, at random, with their labels. A
round solves scikit-learn's logistic regression on the vectors of the model that comes with bertkit,
measures its accuracy on the test part, and adds 50 labels, of the rows that a way chooses:

- `random`;
- `uncertain`: the smallest margins between the two likeliest labels;
- `k-center`: greedily the row farthest from all labeled ones (Sener and Savarese 2018);
- `uncertain-k-center`: the same among the 500 most uncertain rows;
- `uncertain-k-means`: the row in the middle of each of 50 clusters of those (Zhdanov 2019);
- `coverage`: `choose_next` without probabilities;
- `weighted-coverage`: `choose_next` with weights in proportion to uncertainty;
- `choose_next`: as `bertkit review --next` calls it.

Sets are SST-2 (two labels; its test part) and sentences of six authors (1,000 each; test sentences
are of other books). `labels` is how many labels a way's mean accuracy needs to reach the one that
random choice has in the end.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

import bertkit
from author_sets import read_authors
from bertkit.recipes.review.selection import PoolProbabilities, choose_next
from cells import Cells, Row, choose
from program import build_parser
from text_sets import read_labeled_reviews
from turns import begin_table, format_row

Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
SETS = ("sst2", "authors")
POOL_ROWS = 3_000
NUM_UNCERTAIN = 10  # times as many as are chosen
AUTHOR_ROWS = {False: 1_000, True: 300}  # of each author, to learn from and held out
PENALTY = 0.1  # L2, of the mean loss, as of the heads that `finetune` solves


@dataclass(frozen=True)
class Cell:
    """A draw of a set, with labels that a way chooses."""

    set: str
    way: str
    draw: int
    rounds: int
    labels: int = 50  # of a round


@dataclass(frozen=True)
class Part:
    """Vectors of rows, `[rows, features]`, and the ids of their labels."""

    vectors: Vectors
    labels: Ids


@dataclass(frozen=True)
class Round:
    """What a way chooses from: rows without labels, and those that have them."""

    vectors: Vectors
    probabilities: Numbers
    labeled: Vectors
    number: int
    generator: np.random.Generator

    @property
    def margins(self) -> Numbers:
        return 1 - self.expected().find_uncertainty()

    def expected(self) -> PoolProbabilities:
        names = [str(label) for label in range(self.probabilities.shape[1])]
        return PoolProbabilities(self.probabilities, names)


class Squared(PoolProbabilities):
    """Whose weight in `choose_next`, a root of the uncertainty, is the uncertainty."""

    def find_uncertainty(self) -> Numbers:
        return super().find_uncertainty() ** 2


def main() -> None:
    parser = build_parser(__doc__, "selection.jsonl")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--labels", type=int, default=50, help="of a round")
    given = parser.parse_args()
    cells = Cells(given.output, Cell)
    wanted = [
        Cell(name, way, draw, given.rounds, given.labels)
        for name, draw, way in product(given.sets, range(given.draws), given.ways)
    ]
    cells.run(wanted, lambda cell: run_cell(cell, given.data))
    print("\n".join(show(cells.rows(), given.rounds, given.labels)))


def run_cell(cell: Cell, data: Path) -> Row:
    generator = np.random.default_rng(cell.draw)
    whole, test = read_parts(data, cell.set)
    rows = generator.permutation(len(whole.labels))[:POOL_ROWS]
    pool = Part(whole.vectors[rows], whole.labels[rows])
    is_labeled = np.arange(len(rows)) < cell.labels  # in random order
    accuracies, seconds = [], 0.0
    for number in range(cell.rounds + 1):
        model = Head(Part(pool.vectors[is_labeled], pool.labels[is_labeled]))
        is_right = model.predict(test.vectors).argmax(axis=1) == test.labels
        accuracies.append(round(float(np.mean(is_right)), 4))
        if number < cell.rounds:
            others = np.flatnonzero(~is_labeled)
            vectors = pool.vectors[others]
            labeled = pool.vectors[is_labeled]
            predicted = model.predict(vectors)
            started = time.process_time()
            chosen = WAYS[cell.way](Round(vectors, predicted, labeled, cell.labels, generator))
            seconds += time.process_time() - started
            is_labeled[others[chosen]] = True
    return {"accuracies": accuracies, "cpu_seconds_a_round": round(seconds / cell.rounds, 3)}


@cache
def read_parts(data: Path, name: str) -> tuple[Part, Part]:
    """Return the vectors of the two parts of a set; vectors are kept while the program runs."""
    if name == "sst2":
        found = [read_labeled_reviews(data, part) for part in ("train", "test")]
    else:
        found = [
            read_authors(data, AUTHOR_ROWS[is_held_out], held_out=is_held_out)
            for is_held_out in (False, True)
        ]
    names = sorted({label for rows in found for _, label in rows})
    train, test = (
        Part(
            bertkit.embed([text for text, _ in rows]),
            np.array([names.index(label) for _, label in rows]),
        )
        for rows in found
    )
    return train, test


class Head:
    """A logistic regression on scaled features."""

    def __init__(self, part: Part) -> None:
        self.mean, self.deviation = part.vectors.mean(axis=0), part.vectors.std(axis=0) + 1e-6
        strength = 1 / (PENALTY * len(part.labels))
        self.model = LogisticRegression(C=strength, max_iter=200)
        self.model.fit(self.scale(part.vectors), part.labels)

    def scale(self, vectors: Vectors) -> Vectors:
        scaled: Vectors = (vectors - self.mean) / self.deviation
        return scaled

    def predict(self, vectors: Vectors) -> Numbers:
        """Return probabilities, `[rows, labels]`; 0 of labels that no labeled row has."""
        known = self.model.classes_
        found = np.zeros((len(vectors), max(2, known.max() + 1)))
        found[:, known] = self.model.predict_proba(self.scale(vectors))
        return found


def choose_random(given: Round) -> Ids:
    return given.generator.permutation(len(given.vectors))[: given.number]


def choose_uncertain(given: Round, times: int = 1) -> Ids:
    return np.argsort(given.margins, kind="stable")[: given.number * times]


def choose_centers(given: Round) -> Ids:
    farness = 1 - (given.vectors @ given.labeled.T).max(axis=1)
    chosen = []
    for _ in range(min(given.number, len(farness))):
        chosen.append(int(farness.argmax()))
        farness = np.minimum(farness, 1 - given.vectors @ given.vectors[chosen[-1]])
    return np.array(chosen)


def choose_uncertain_centers(given: Round) -> Ids:
    among = choose_uncertain(given, NUM_UNCERTAIN)
    narrow = replace(given, vectors=given.vectors[among], probabilities=given.probabilities[among])
    return among[choose_centers(narrow)]


def choose_uncertain_means(given: Round) -> Ids:
    among = choose_uncertain(given, NUM_UNCERTAIN)
    vectors = given.vectors[among]
    clusters = KMeans(min(given.number, len(among)), n_init=1, random_state=0)
    clusters.fit(vectors, sample_weight=1 - given.margins[among])
    distances = clusters.transform(vectors)
    distances[clusters.labels_[:, np.newaxis] != np.arange(clusters.n_clusters)] = np.inf
    return np.unique(among[distances.argmin(axis=0)])


def choose_covering(given: Round, expected: PoolProbabilities | None = None) -> Ids:
    found = choose_next(expected, given.vectors, given.number, given.labeled)
    return np.array([each.number for each in found])


WAYS: dict[str, Callable[[Round], Ids]] = {
    "random": choose_random,
    "uncertain": choose_uncertain,
    "k-center": choose_centers,
    "uncertain-k-center": choose_uncertain_centers,
    "uncertain-k-means": choose_uncertain_means,
    "coverage": choose_covering,
    "weighted-coverage": lambda given: choose_covering(given, Squared(**vars(given.expected()))),
    "choose_next": lambda given: choose_covering(given, given.expected()),
}


def show(rows: list[Row], rounds: int, labels: int) -> list[str]:
    header = ("set", "way", "draws", "mean accuracy", "in the end", "more than random", "labels")
    lines = [begin_table(*header)]
    for name, way in product(SETS, WAYS):
        base = read_curves(rows, name, "random", rounds, labels)
        curves = read_curves(rows, name, way, rounds, labels)
        if len(curves):
            compared = compare(curves, base, labels)
            lines.append(format_row(name, way, str(len(curves)), *compared))
    return lines


def read_curves(rows: list[Row], name: str, way: str, rounds: int, labels: int) -> Numbers:
    found = choose(rows, Cell, set=name, way=way, rounds=rounds, labels=labels)
    found.sort(key=lambda row: row["cell"]["draw"])
    return np.array([row["accuracies"] for row in found])


def compare(curves: Numbers, base: Numbers, labels: int) -> list[str]:
    """Return mean accuracy and the last, what it is above random's, and the labels needed."""
    cells = [f"{100 * curves[:, 1:].mean():.1f}", f"{100 * curves[:, -1].mean():.1f}"]
    if len(base) != len(curves):
        return [*cells, "–", "–"]
    gains = 100 * (curves - base)[:, 1:].mean(axis=1)
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else float("nan")
    return [*cells, f"{gains.mean():+.1f} ± {error:.1f}", count_labels(curves, base, labels)]


def count_labels(curves: Numbers, base: Numbers, labels: int) -> str:
    """Return how many labels reach the accuracy that `base` has in the end."""
    best, wanted = np.maximum.accumulate(curves.mean(axis=0)), base.mean(axis=0)[-1]
    sizes = labels * np.arange(1, len(best) + 1)
    if best[-1] < wanted:
        return f"more than {sizes[-1]}"
    return f"{np.interp(wanted, best, sizes):.0f}"


if __name__ == "__main__":
    main()
