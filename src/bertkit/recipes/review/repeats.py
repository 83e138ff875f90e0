"""Find texts that stand twice, within a file and in several files.

Texts are compared in two steps. Equal ones are the same as they are, or folded: without case,
punctuation, invisible characters and differences in blanks. Near ones share most of their runs of
four characters (Dice's coefficient of the two sets). Candidates come from MinHash, so that time and
memory grow with the number of texts and not with its square. An encoder isn't asked: its cosine
is lower for a typing error than between sentences about one subject, and `benchmarks/
bench_repeats.py` measures both.

The threshold comes from the data: in a sample of the texts a word is exchanged, and 90 % of these
edits must be found. In a short text a word is more of the whole, so the threshold is lower there.
More than `MAX_NEAR` different texts that are near each other aren't repeats, but a template.

Sources: Broder, "On the Resemblance and Containment of Documents", 1997 (MinHash); Lee et al.,
"Deduplicating Training Data Makes Language Models Better", ACL 2022.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from bertkit.base.errors import pluralize
from bertkit.reports.text import show

Kind = Literal["equal", "folded", "near", "template"]  # in this order, too
Text = str | tuple[str, ...]  # a text, or those of a row that has several
Numbers = NDArray[np.int64]
Repeat = tuple[bool, bool, int, int]  # whether within a file, whether near, and the two files

RUN = 4  # characters
# At 0.8, 0.04 % of SST-2's distinct sentences are near another one; at 0.7, it is 0.4 %.
THRESHOLDS = 0.8, 0.9
FOUND_SHARE = 0.9  # of planted edits
NUM_PLANTED = 600
MAX_NEAR = 20
# Two texts that share 80 % of their runs meet in one of the bands with a probability of 0.996.
NUM_BANDS, BAND = 40, 5
NEIGHBORS = 8  # compared of a bucket
SIGNATURE_MARGIN = 0.06  # two standard errors of a share of 200
CHARACTERS_AT_ONCE, PAIRS_AT_ONCE, NUM_REMEMBERED = 1 << 20, 1 << 16, 1 << 18
SEPARATOR, END = "\n", "\r"  # of several texts, and of each; a folded one has neither


@dataclass(frozen=True)
class RepeatedGroup:
    """Rows whose texts are the same.

    Attributes:
        members: the rows, in order.
        labels: of each member; None without a label.
        files: the number of the file of each member.
        kind: how much the texts differ; those of a template are alike, and mean different things.
    """

    members: tuple[int, ...]
    labels: tuple[str | None, ...]
    files: tuple[int, ...]
    kind: Kind

    @cached_property
    def conflict(self) -> tuple[int, int] | None:
        """The places among the members of the first two with different labels, if there are."""
        labeled = [place for place, label in enumerate(self.labels) if label is not None]
        others = (place for place in labeled if self.labels[place] != self.labels[labeled[0]])
        other = None if self.kind == "template" else next(others, None)
        return None if other is None else (labeled[0], other)


def find_repeats(
    texts: Sequence[Text], labels: Sequence[str | None], files: Sequence[int]
) -> list[RepeatedGroup]:
    """Group the rows of all files by their texts; those with different labels come first.

    Near groups have all rows of their texts, so a row may be in an equal group, too. Where a row
    has several texts, each must be near. Rows without text aren't compared.
    """
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        if folded := fold(text).strip(SEPARATOR):
            rows[folded].append(row)
    found: list[tuple[list[int], Kind]] = [
        (members, "equal" if len({texts[row] for row in members}) == 1 else "folded")
        for members in rows.values()
        if len(members) > 1
    ]
    distinct = list(rows)
    for numbers in _link(distinct, find_threshold(distinct)):
        members = sorted(chain.from_iterable(rows[distinct[number]] for number in numbers))
        found.append((members, "near" if len(numbers) <= MAX_NEAR else "template"))
    groups = [
        RepeatedGroup(
            tuple(members),
            tuple(labels[row] for row in members),
            tuple(files[row] for row in members),
            kind,
        )
        for members, kind in found
    ]
    # Then equal ones, and those of several files.
    groups.sort(key=lambda one: (not one.conflict, one.kind, len({*one.files}) == 1, one.members))
    return groups


def fold(text: Text) -> str:
    """Return a text in the form in which repeats are equal; several texts are as many lines."""
    if not isinstance(text, str):
        return SEPARATOR.join(map(fold, text))
    normal = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(map(_fold_character, normal)).split()
    return " ".join(words or normal.split())  # punctuation alone is kept


@cache
def _fold_character(character: str) -> str:
    """Return a blank for punctuation, and nothing for an invisible character."""
    category = unicodedata.category(character)
    return "" if category == "Cf" else " " if category[0] in "PZC" else character


def find_threshold(folded: Sequence[str]) -> float:
    """Return the similarity that 90 % of texts keep where a word is exchanged, within bounds."""
    texts = (text.partition(SEPARATOR)[0] for text in folded[:: len(folded) // NUM_PLANTED + 1])
    sample = [text for text in texts if text]
    generator = np.random.default_rng(0)
    similarities = [1.0]
    for text, other in zip(sample, sample[1:] + sample[:1], strict=True):
        blank = " " if text.count(" ") > 1 else ""  # else a character, as in Chinese
        units, words = text.split(blank) if blank else [*text], other.split()
        units[generator.integers(len(units))] = words[generator.integers(len(words))]
        similarities.append(compare(text, blank.join(units)))
    return float(np.clip(np.quantile(similarities, 1 - FOUND_SHARE), *THRESHOLDS))


def compare(first: str, second: str) -> float:
    """Return the share of runs of characters that two folded texts have in common.

    It is Dice's coefficient; of several texts, that of the two that differ most.
    """
    parts = first.split(SEPARATOR), second.split(SEPARATOR)
    if len(parts[0]) != len(parts[1]):
        return 0.0
    runs = ((_list_runs(one), _list_runs(other)) for one, other in zip(*parts, strict=True))
    return min(2 * len(one & other) / (len(one) + len(other)) for one, other in runs)


def _list_runs(text: str) -> set[str]:
    padded = _pad(text)
    return {padded[start : start + RUN] for start in range(len(text) + 1)}


def _pad(text: str) -> str:
    return f" {text}{END * (RUN - 1)}"


def _link(folded: Sequence[str], threshold: float) -> list[list[int]]:
    """Return the connected components of texts that are near each other, of two or more."""
    parents = np.arange(len(folded))
    compare_once = lru_cache(NUM_REMEMBERED)(compare)  # most pairs meet in several bands
    for pair in _find_candidates(folded, threshold, parents):
        one, other = sorted(_find_root(parents, number) for number in pair)
        if one != other and compare_once(*(folded[number] for number in pair)) >= threshold:
            parents[other] = one
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for number in range(len(folded)):
        groups[_find_root(parents, number)].append(number)
    return [numbers for numbers in groups.values() if len(numbers) > 1]


def _find_root(parents: Numbers, number: int) -> int:
    while (parent := int(parents[number])) != number:
        parents[number] = parents[parent]
        number = parent
    return number


def _find_candidates(
    folded: Sequence[str], threshold: float, parents: Numbers
) -> Iterator[list[int]]:
    """Yield pairs that may be near, and that `parents` doesn't connect at the time."""
    signatures = _sign(folded)
    least = threshold / (2 - threshold) - SIGNATURE_MARGIN  # Jaccard's coefficient
    mixers = np.array([3, 5, 17, 257, 65537], np.uint64) ** np.uint64(7)
    for start in range(0, NUM_BANDS * BAND, BAND):
        keys = (signatures[:, start : start + BAND] * mixers).sum(axis=1)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        for distance in range(1, NEIGHBORS):
            places = np.flatnonzero(keys[distance:] == keys[:-distance])
            for begin in range(0, len(places), PAIRS_AT_ONCE):
                part = places[begin : begin + PAIRS_AT_ONCE]
                pairs = np.stack([order[part], order[part + distance]], axis=1)
                while np.any(parents[parents] != parents):  # so that each is its text's root
                    parents[:] = parents[parents]
                pairs = pairs[np.ptp(parents[pairs], axis=1) > 0]
                is_same = signatures[pairs[:, 0]] == signatures[pairs[:, 1]]
                yield from pairs[is_same.mean(axis=1) >= least].tolist()


def _sign(folded: Sequence[str]) -> NDArray[np.uint32]:
    """Return the MinHash signature of each text, in blocks of texts."""
    signatures = np.empty((len(folded), NUM_BANDS * BAND), np.uint32)
    functions = np.random.default_rng(0).integers(1 << 32, size=(2, NUM_BANDS * BAND), dtype="u4")
    start, size = 0, 0
    for stop, text in enumerate(folded, 1):
        size += len(text)
        if size >= CHARACTERS_AT_ONCE or stop == len(folded):
            hashes, starts = _hash_runs(folded[start:stop])
            for column, (factor, mask) in enumerate(functions.T):
                mixed = (hashes ^ mask) * (factor | 1)
                signatures[start:stop, column] = np.minimum.reduceat(mixed, starts)
            start, size = stop, 0
    return signatures


def _hash_runs(texts: Sequence[str]) -> tuple[NDArray[np.uint32], Numbers]:
    """Hash the runs of all texts; return them with the start of each text."""
    data = "".join(map(_pad, texts)).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(data, "<u4").astype(np.uint32)
    hashes = sliding_window_view(codes, RUN) @ (np.uint32(0x01000193) ** np.arange(RUN, dtype="u4"))
    hashes = hashes[codes[: len(hashes)] != ord(END)]
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # the finalizer of MurmurHash3
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    counts = np.array([len(text) + 1 for text in texts])
    return hashes, np.cumsum(counts) - counts


def describe_repeats(groups: Sequence[RepeatedGroup], names: Sequence[str]) -> list[str]:
    """Return lines that count the rows that stand in two files of these names, and twice in one.

    A row counts once for each file that has its text before; its label is compared with the first.
    """
    counts, conflicts = Counter[Repeat](), Counter[Repeat]()
    counted = set[tuple[int, int]]()
    for group in sorted(groups, key=lambda group: group.kind):
        first_labels: dict[int, str | None] = {}
        for row, label, file in zip(group.members, group.labels, group.files, strict=True):
            for other, first in first_labels.items():
                if group.kind != "template" and (row, other) not in counted:
                    counted.add((row, other))
                    how = file == other, group.kind == "near", file, other
                    counts[how] += 1
                    conflicts[how] += None is not label != first is not None
            first_labels.setdefault(file, label)
    lines = [_describe_count(counts[how], conflicts[how], names, how) for how in sorted(counts)]
    sizes = [len(group.members) for group in groups if group.kind == "template"]
    if sizes:
        lines.append(
            f"{pluralize(sum(sizes), 'row')} follow {pluralize(len(sizes), 'template')}: more than"
            f" {MAX_NEAR} texts that differ by about a word, which aren't counted as repeats"
        )
    return lines


def _describe_count(number: int, num_conflicts: int, names: Sequence[str], how: Repeat) -> str:
    is_within, is_near, file, other = how
    rows = pluralize(number, "row") + f" of {show(names[file])}" * (len(names) > 1)
    verb, nearly = "repeats" if number == 1 else "repeat", " but for about a word" * is_near
    earlier = "an earlier one" if is_within else f"one of {show(names[other])}"
    which = f"{num_conflicts:,} of them " if num_conflicts < number else "all " * (number > 1)
    conflicts = f", {which}with another label" * (num_conflicts > 0)
    leak = "" if is_within or is_near else "; who trains on one file can't measure by these rows"
    return f"{rows} {verb} {earlier}{nearly}{conflicts}{leak}"
