"""How many near duplicates a review finds, and what 100,000 texts take.

    python benchmarks/bench_repeats.py --rows 5000 --texts 100000

Each set has `rows` different texts (without case, marks and blanks): SST-2's sentences, and
sentences of 8 to 40 words from books. A tenth of them is planted again with one of ten edits, in
turns: upper case, other marks, other blanks, another Unicode form, a typing error, a word left out,
a word added, two words exchanged, a number changed (or added where there is none), a word replaced.
What is found is pairs; a pair is right if it is a planted text and its source, so that what the set
itself repeats counts as wrong. `recall` is the best at a precision of 0.95 or more:

- `runs`: groups of `find_repeats`, at thresholds from 0.5 to 1; `chosen` is at the one that it
  finds itself, whatever the precision;
- `cosine`: each text and its nearest, by the vectors of all-MiniLM-L6-v2;
- `cosine_then_runs`: the same pairs, ordered by the runs of characters that they share.

The time and memory of many texts are those of a process of its own, for sentences of books and for
texts of three templates. `bytes_before` is what it holds with the texts, which it has read.
"""

import json
import random
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, count, cycle, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import numpy as np

import bertkit
from bertkit.data.sentences import split_sentences
from bertkit.recipes.review import repeats
from bertkit.recipes.review.repeats import compare, find_repeats, fold
from minilm import find_minilm
from peaks import read_status
from program import build_parser, run_program, write_figures
from text_sets import read_gzip, read_reviews
from turns import format_row

Pair = tuple[int, int]
NUM_WORDS = range(8, 41)  # of a sentence
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PLANTED = 10  # one of so many texts
PRECISION = 0.95
THRESHOLDS = np.linspace(0.5, 1, 26)
ROWS_AT_ONCE = 1024
TEMPLATES = (
    "which is the largest of all cities in the country of {} today?",
    "I would like to return order {}, which did not arrive in time.",
    "the shop in {} was closed when we came, please give us our money back",
)
SEED = 0


def main() -> None:
    parser = build_parser(__doc__, "repeats.json")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=[*SETS])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--only", choices=MANY, help="time these in this process")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(time_texts(arguments.only, arguments.data, arguments.texts)))
        return
    results = []
    for name in arguments.sets:
        texts = read_different(SETS[name](arguments.data), arguments.rows)
        results.append({"set": name, **measure(texts)})
        print(describe(results[-1]), flush=True)
    many = []
    for name in MANY:
        words = ("--data", arguments.data, "--texts", arguments.texts, "--only", name)
        many.append({"kind": name, **json.loads(run_program(__file__, *words))})
        print(many[-1], flush=True)
    write_figures(arguments.output, results=results, many=many)


def read_book_sentences(data: Path) -> Iterator[str]:
    """Sentences of all books, in the order of their names."""
    for path in sorted((data / "corpus" / "books").glob("*.txt.gz")):
        for line in read_gzip(path).split("\n"):
            yield from (each for each in split_sentences(line) if len(each.split()) in NUM_WORDS)


def fill_templates(_: Path) -> Iterator[str]:
    generator = random.Random(SEED)
    for number in count():
        name = "".join(generator.choices(LETTERS, k=7))
        yield TEMPLATES[number % len(TEMPLATES)].format(name)


SETS: dict[str, Callable[[Path], Iterable[str]]] = {
    "sst2": read_reviews,
    "books": read_book_sentences,
}
MANY = {"books": read_book_sentences, "templates": fill_templates}


def read_different(texts: Iterable[str], number: int) -> list[str]:
    """A random sample of the texts that differ, in their order."""
    different = [*{fold(text): text for text in texts}.values()]
    sample = random.Random(SEED).sample(range(len(different)), min(number, len(different)))
    return [different[place] for place in sorted(sample)]


def change_case(text: str, _: str, __: random.Random) -> str:
    return text.lower() if text.isupper() else text.upper()


def change_marks(text: str, _: str, __: random.Random) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text).split()) + "!"


def change_blanks(text: str, _: str, __: random.Random) -> str:
    return "\t" + "  ".join(text.split()) + "\n"


def change_form(text: str, _: str, __: random.Random) -> str:
    changed = unicodedata.normalize("NFD", text).replace("'", "’").replace("-", "–")
    return changed.replace(" ", "\xa0", 1)


def mistype(text: str, _: str, generator: random.Random) -> str:
    words = text.split()
    longest = max(words, key=len)
    place = generator.randrange(len(longest))
    start, rest = longest[:place], longest[place:]
    letter = generator.choice(LETTERS)
    typed = generator.choice(
        [start + rest[1::-1] + rest[2:], start + rest[1:], start + letter + rest]
    )
    return " ".join(typed if word == longest else word for word in words)


def leave_out(text: str, _: str, generator: random.Random) -> str:
    words = text.split()
    del words[generator.randrange(len(words))]
    return " ".join(words)


def add_word(text: str, other: str, generator: random.Random) -> str:
    words = text.split()
    words.insert(generator.randrange(len(words) + 1), generator.choice(other.split()))
    return " ".join(words)


def exchange(text: str, _: str, generator: random.Random) -> str:
    words = text.split()
    place = generator.randrange(max(1, len(words) - 1))
    words[place : place + 2] = words[place : place + 2][::-1]
    return " ".join(words)


def change_number(text: str, _: str, generator: random.Random) -> str:
    number = str(generator.randrange(2, 1000))
    changed = re.sub(r"\d+", number, text, count=1)
    return add_word(text, number, generator) if changed == text else changed


def replace_word(text: str, other: str, generator: random.Random) -> str:
    words = text.split()
    words[generator.randrange(len(words))] = generator.choice(other.split())
    return " ".join(words)


EDITS: dict[str, Callable[[str, str, random.Random], str]] = {
    "case": change_case,
    "marks": change_marks,
    "blanks": change_blanks,
    "form": change_form,
    "typing_error": mistype,
    "left_out": leave_out,
    "added": add_word,
    "exchanged": exchange,
    "number": change_number,
    "replaced": replace_word,
}


def measure(texts: Sequence[str]) -> dict[str, Any]:
    """Plant edits, and look for them in three ways."""
    generator = random.Random(SEED)
    sources = sorted(generator.sample(range(len(texts)), -(-len(texts) // PLANTED)))
    names = [name for name, _ in zip(cycle(EDITS), sources, strict=False)]
    planted = [
        EDITS[name](texts[source], texts[source - 1], generator)
        for name, source in zip(names, sources, strict=True)
    ]
    all_texts = [*texts, *planted]
    right = [(source, len(texts) + number) for number, source in enumerate(sources)]
    cosines = find_nearest(all_texts)
    shared = {pair: compare(*(fold(all_texts[row]) for row in pair)) for pair in cosines}
    chosen = list_pairs(all_texts)
    found = Counter(name for name, pair in zip(names, right, strict=True) if pair in chosen)
    return {
        "texts": len(texts),
        "planted": len(planted),
        "threshold": repeats.find_threshold([*dict.fromkeys(map(fold, all_texts))]),
        "chosen": rate(chosen, right),
        "recall_of_edits": {name: found[name] / max(1, names.count(name)) for name in EDITS},
        "runs": choose_best((list_pairs(all_texts, each) for each in THRESHOLDS), right),
        "cosine": choose_best(rank(cosines), right),
        "cosine_then_runs": choose_best(rank(shared), right),
    }


def list_pairs(texts: Sequence[str], threshold: float | None = None) -> set[Pair]:
    """The pairs of all groups, at the threshold that is found or at another."""
    bounds = repeats.THRESHOLDS if threshold is None else (threshold, threshold)
    with patch.object(repeats, "THRESHOLDS", bounds):
        groups = find_repeats(texts, [None] * len(texts), [0] * len(texts))
    kept = (group.members for group in groups if group.kind != "template")
    return {pair for members in kept for pair in combinations(members, 2)}


def find_nearest(texts: Sequence[str]) -> dict[Pair, float]:
    """Each text and its nearest by the encoder, with their cosine."""
    vectors = np.asarray(bertkit.embed([*texts], model=find_minilm()))
    found = {}
    for start in range(0, len(texts), ROWS_AT_ONCE):
        cosines = vectors[start : start + ROWS_AT_ONCE] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -1
        best = cosines.argmax(axis=1)
        for row, other in zip(rows.tolist(), best.tolist(), strict=True):
            found[min(start + row, other), max(start + row, other)] = float(cosines[row, other])
    return found


def rank(scores: Mapping[Pair, float]) -> Iterator[set[Pair]]:
    """The pairs above each of many thresholds."""
    for threshold in np.quantile([*scores.values()], np.linspace(0, 1, 501)):
        yield {pair for pair, score in scores.items() if score >= threshold}


def rate(found: set[Pair], right: Sequence[Pair]) -> dict[str, float]:
    num_right = len(found.intersection(right))
    return {"recall": num_right / len(right), "precision": num_right / max(1, len(found))}


def choose_best(found: Iterable[set[Pair]], right: Sequence[Pair]) -> dict[str, float]:
    """The best recall at the precision, or all at none."""
    rated = [rate(pairs, right) for pairs in found]
    enough = [each for each in rated if each["precision"] >= PRECISION]
    return max(enough, key=itemgetter("recall"), default={"recall": 0.0, "precision": 1.0})


def time_texts(kind: str, data: Path, number: int) -> dict[str, Any]:
    """The time and memory that so many texts take."""
    texts = [*islice(MANY[kind](data), number)]
    labels, files = [None] * len(texts), [0] * len(texts)
    before, started, processor = read_status("VmRSS"), time.perf_counter(), time.process_time()
    groups = find_repeats(texts, labels, files)
    kinds = Counter(group.kind for group in groups)
    return {
        "texts": len(texts),
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - processor,
        "bytes_before": before,
        "peak_bytes": read_status("VmHWM"),
        "groups": {kind: kinds[kind] for kind in get_args(repeats.Kind)},
        "largest": max((len(group.members) for group in groups), default=0),
    }


def describe(row: Mapping[str, Any]) -> str:
    lines = [f"{row['set']}: {row['planted']} in {row['texts']}, threshold {row['threshold']:.3f}"]
    for way in ("chosen", "runs", "cosine", "cosine_then_runs"):
        lines += [format_row(way, *(f"{value:.3f}" for value in row[way].values()))]
    return "\n".join([*lines, str(row["recall_of_edits"])])


if __name__ == "__main__":
    main()
