"""Find texts that stand twice, within a file and in several files.

Texts are compared in two steps. Equal ones are the same as they are, or folded: without case,
punctuation, invisible characters and differences in blanks. Near ones share most of their runs of
four characters (Dice's coefficient of the two sets). Candidates come from MinHash, so that time and
memory grow with the number of texts and not with its square. An encoder isn't asked: its cosine
is lower for a typing error than between sentences about one subject, and `benchmarks/
bench_repeats.py` measures both.

The threshold comes from the data: edits of one word are planted in a sample of the texts, and 98 %
of them must be found. In a short text a word is more of the whole, so the threshold is lower there.
More than `MAX_NEAR` different texts that are near each other aren't repeats, but a template.

Sources: Broder, "On the Resemblance and Containment of Documents", 1997 (MinHash); Lee et al.,
"Deduplicating Training Data Makes Language Models Better", ACL 2022.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import pluralize
from bertkit.reports.text import show

Kind = Literal["equal", "folded", "near", "template"]
Text = str | tuple[str, ...]  # a text, or those of a row that has several
Numbers = NDArray[np.int64]

KINDS: tuple[Kind, ...] = ("equal", "folded", "near", "template")
RUN = 4  # characters
# At 0.8, 0.04 % of SST-2's distinct sentences are near another one; at 0.7, it is 0.4 %.
THRESHOLDS = 0.8, 0.9
FOUND_SHARE = 0.98  # of planted edits
NUM_PLANTED = 600
MAX_NEAR = 20
# Two texts that share 80 % of their runs meet in one of the bands with a probability of 0.996.
NUM_BANDS, BAND = 40, 5
NEIGHBORS = 8  # compared of a bucket
SIGNATURE_MARGIN = 0.06  # two standard errors of a share of 200
CHARACTERS_AT_ONCE, PAIRS_AT_ONCE, NUM_REMEMBERED = 1 << 20, 1 << 16, 1 << 18
SEPARATOR = "\n"  # of several texts; a folded one has none


@dataclass(frozen=True)
class RepeatedGroup:
    """Rows whose texts are the same.

    Attributes:
        members: the rows, in order.
        labels: of each member; None without a label.
        files: the number of the file of each member.
        kind: how much the texts differ; those of a template are alike, and mean different things.
        similarity: each member shares at least this share with another one.
    """

    members: tuple[int, ...]
    labels: tuple[str | None, ...]
    files: tuple[int, ...]
    kind: Kind
    similarity: float

    @property
    def conflict(self) -> tuple[int, int] | None:
        """The places among the members of the first two with different labels, if there are."""
        labeled = [place for place, label in enumerate(self.labels) if label is not None]
        others = (place for place in labeled if self.labels[place] != self.labels[labeled[0]])
        other = None if self.kind == "template" else next(others, None)
        return None if other is None else (labeled[0], other)

    @cached_property
    def has_conflict(self) -> bool:
        """Whether its labels differ."""
        return self.conflict is not None

    @cached_property
    def different_files(self) -> list[int]:
        """The numbers of the files that have members."""
        return sorted({*self.files})

    @property
    def is_leak(self) -> bool:
        """Whether it has rows of several files."""
        return self.kind != "template" and len(self.different_files) > 1


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
    found: list[tuple[list[int], Kind, float]] = []
    for members in rows.values():
        if len(members) > 1:
            is_equal = all(texts[row] == texts[members[0]] for row in members)
            found.append((members, "equal" if is_equal else "folded", 1.0))
    distinct = list(rows)
    for numbers, similarity in _link(distinct, find_threshold(distinct)):
        members = sorted(row for number in numbers for row in rows[distinct[number]])
        kind: Kind = "near" if len(numbers) <= MAX_NEAR else "template"
        found.append((members, kind, similarity))
    groups = [
        RepeatedGroup(
            tuple(members),
            tuple(labels[row] for row in members),
            tuple(files[row] for row in members),
            kind,
            similarity,
        )
        for members, kind, similarity in found
    ]
    groups.sort(
        key=lambda group: (
            not group.has_conflict,
            KINDS.index(group.kind),
            not group.is_leak,
            group.members,
        )
    )
    return groups


class _Folding(dict[int, str | None]):
    """What each character becomes: punctuation a blank, an invisible one nothing."""

    def __missing__(self, character: int) -> str | None:
        category = unicodedata.category(chr(character))
        kept = None if category == "Cf" else " " if category[0] in "PZC" else chr(character)
        self[character] = kept
        return kept


_FOLDING = _Folding()


def fold(text: Text) -> str:
    """Return a text in the form in which repeats are equal; several texts are as many lines."""
    if not isinstance(text, str):
        return SEPARATOR.join(fold(part) for part in text)
    normal = unicodedata.normalize("NFKC", text).casefold()
    words = normal.translate(_FOLDING).split() or normal.split()  # punctuation alone is kept
    return " ".join(words)


def find_threshold(folded: Sequence[str]) -> float:
    """Return the similarity that 98 % of small edits of such texts reach, within bounds."""
    texts = (text.partition(SEPARATOR)[0] for text in folded[:: len(folded) // NUM_PLANTED + 1])
    sample = [text for text in texts if text]
    generator = np.random.default_rng(0)
    similarities = [
        compare(text, plant_edit(text, sample[number - 1], number, generator))
        for number, text in enumerate(sample)
    ]
    found = np.quantile(similarities, 1 - FOUND_SHARE) if similarities else 1.0
    return float(np.clip(found, *THRESHOLDS))


def plant_edit(text: str, other: str, number: int, generator: np.random.Generator) -> str:
    """Return a text with one of six small edits: of a word, or of a character without words.

    A word that is added or put in another's place comes from the other text.
    """
    units, blank = (text.split(" "), " ") if text.count(" ") > 1 else ([*text], "")
    place = int(generator.integers(len(units)))
    unit, after, words = units[place], units[place + 1 :], other.split(" ")
    letter = int(generator.integers(len(unit)))
    word = words[int(generator.integers(len(words)))]
    edits = (
        [unit[:letter] + unit[letter + 1 :], *after],  # a letter left out
        [unit[:letter] + unit[letter : letter + 2][::-1] + unit[letter + 2 :], *after],  # exchanged
        after,  # a word left out
        [unit, word, *after],  # one added
        [word, *after],  # one in another's place
        [*after[:1], unit, *after[1:]],  # two exchanged
    )
    return blank.join(units[:place] + edits[number % len(edits)])


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
    return {padded[start : start + RUN] for start in range(len(padded) - RUN + 1)}


def _pad(text: str) -> str:
    return f" {text} ".ljust(RUN)


def _link(folded: Sequence[str], threshold: float) -> Iterator[tuple[list[int], float]]:
    """Yield the connected components of texts that are near each other, with the least link."""
    parents, least = np.arange(len(folded)), np.ones(len(folded))
    compare_once = lru_cache(NUM_REMEMBERED)(compare)  # most pairs meet in several bands
    for first, second in _find_candidates(folded, threshold, parents):
        one, other = sorted((_find_root(parents, first), _find_root(parents, second)))
        if (
            one != other
            and (similarity := compare_once(folded[first], folded[second])) >= threshold
        ):
            parents[other] = one
            least[one] = min(least[one], least[other], similarity)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for number in range(len(folded)):
        groups[_find_root(parents, number)].append(number)
    for root, numbers in groups.items():
        if len(numbers) > 1:
            yield numbers, float(least[root])


def _find_root(parents: Numbers, number: int) -> int:
    while (parent := int(parents[number])) != number:
        parents[number] = parents[parent]
        number = parent
    return number


def _find_candidates(
    folded: Sequence[str], threshold: float, parents: Numbers
) -> Iterator[tuple[int, int]]:
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
                pairs = pairs[np.ptp(_find_roots(parents)[pairs], axis=1) > 0]
                is_same = signatures[pairs[:, 0]] == signatures[pairs[:, 1]]
                yield from pairs[is_same.mean(axis=1) >= least].tolist()


def _find_roots(parents: Numbers) -> Numbers:
    while np.any(parents[parents] != parents):
        parents[:] = parents[parents]
    return parents


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
    padded = [_pad(text) for text in texts]
    data = "".join(padded).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(data, "<u4").astype(np.uint32)
    num_runs = len(codes) - RUN + 1
    hashes = np.zeros(num_runs, np.uint32)
    for place in range(RUN):
        hashes = (hashes ^ codes[place : place + num_runs]) * np.uint32(0x01000193)  # FNV-1a
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # the finalizer of MurmurHash3
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    ends = np.cumsum([len(text) for text in padded])
    is_run = np.ones(len(codes), bool)
    for place in range(1, RUN):  # runs that go on in the next text
        is_run[ends - place] = False
    counts = np.diff(ends, prepend=0) - RUN + 1
    return hashes[is_run[:num_runs]], np.cumsum(counts) - counts


def describe_repeats(groups: Sequence[RepeatedGroup], names: Sequence[str]) -> list[str]:
    """Return lines that count the rows that stand twice, and in two files of these names.

    A row counts once for each file that has its text before; its label is compared with the first.
    """
    lines, counted = [], set[tuple[int, int]]()
    for kinds, how in ((("equal", "folded"), ""), (("near",), "nearly ")):
        counts = Counter[tuple[int, int]]()
        conflicts = Counter[tuple[int, int]]()
        for group in (group for group in groups if group.kind in kinds):
            first_labels: dict[int, str | None] = {}
            for row, label, file in zip(group.members, group.labels, group.files, strict=True):
                for other, first in first_labels.items():
                    if (row, other) not in counted:
                        counted.add((row, other))
                        counts[file, other] += 1
                        conflicts[file, other] += None is not label != first is not None
                first_labels.setdefault(file, label)
        told = [
            _describe_count(counts[pair], conflicts[pair], pair, names, how)
            for pair in sorted(counts)
        ]
        if told:
            lines.append("; ".join(told) + (" (they differ by about a word)" if how else ""))
    templates = [group for group in groups if group.kind == "template"]
    if templates:
        num_rows = sum(len(group.members) for group in templates)
        what = pluralize(len(templates), "template")
        lines.append(
            f"{pluralize(num_rows, 'row')} follow {what}: more than {MAX_NEAR} texts that differ by"
            " about a word, which aren't counted as repeats"
        )
    return lines


def _describe_count(
    number: int, num_conflicts: int, pair: tuple[int, int], names: Sequence[str], how: str
) -> str:
    file, other = pair
    of_file = f" of {show(names[file])}" if len(names) > 1 else ""
    verb = "stands" if number == 1 else "stand"
    place = f"{how}twice" if file == other else f"{how}in {show(names[other])}"
    which = f"{num_conflicts:,} of them " if num_conflicts < number else "all " * (number > 1)
    conflicts = f", {which}with another label" if num_conflicts else ""
    return f"{pluralize(number, 'row')}{of_file} {verb} {place}{conflicts}"
