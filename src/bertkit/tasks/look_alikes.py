"""Labels that are taken for different ones: spellings that look alike, and typing errors."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from bertkit.reports.text import count_columns, show

# Lower case, because case folding comes first: в maps to b because В looks like B.
LETTERS = str.maketrans(
    "авеѕіјкмнорстухһԁԛԝ" + "αβεζηικμνορτυχ", "abesijkmhopctyxhdqw" + "abezhikmnoptyx"
)
MARKS = str.maketrans("‐‑‒–—―−‘’ʼ“”„", "-------'''\"\"\"")
# Invisible characters outside the category Cf: fillers and variation selectors.
FILLERS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0}
FILLERS |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
SHOWN_PAIRS, SHOWN_COLUMNS = 3, 40

Counts = Mapping[str, int]


def describe_look_alikes(counts: Counts, known: Counts | None = None) -> list[str]:
    """Describe labels that look alike in one line, and typing errors in another, if there are any.

    Only labels unknown to a model are compared with its labels, if those are given.
    """
    return [*describe_spellings(counts, known), *describe_typing_errors(counts, known)]


def describe_spellings(counts: Counts, known: Counts | None) -> list[str]:
    """Describe labels that look alike in one line; an empty list if there are none."""
    is_unknown = any(label not in known for label in counts) if known is not None else True
    compared = (counts if known is None else known) if is_unknown else ()
    by_form: defaultdict[str, list[str]] = defaultdict(list)
    for label in compared:
        by_form[find_form(label)].append(label)
    if known is None:
        pairs = [pair for group in by_form.values() for pair in pairwise(group)]
    else:
        unknown = ((label, find_form(label)) for label in counts if label not in known)
        pairs = [(label, by_form[form][-1]) for label, form in unknown if form in by_form]
    if not pairs:
        return []
    told = []
    for pair in pairs[:SHOWN_PAIRS]:
        first, second = (name_label(label, counts) for label in pair)
        label, other = pair
        for difference, change in DIFFERENCES.items():
            label, other = change(label), change(other)
            if label == other:
                told.append(f"{first} and {second} differ in {difference}")
                break
    if len(pairs) > SHOWN_PAIRS:
        told.append(f"and {len(pairs) - SHOWN_PAIRS:,} more")
    line = f"labels that look alike are different labels: {'; '.join(told)}"
    return [f"{line}. Use the same spelling if they mean the same"]


def name_label(label: str, counts: Counts) -> str:
    """Return a label with the number of its rows, if it has any."""
    return f"'{show(label, SHOWN_COLUMNS)}'" + (f" ({counts[label]:,})" if label in counts else "")


def find_form(label: str) -> str:
    """Return the normal form that a label shares with all labels that look like it."""
    if label.isascii():
        return " ".join(label.split()).casefold()
    for change in DIFFERENCES.values():
        label = change(label)
    return label


# Kinds of differences between look-alikes, and the normalization that removes each, in order.
DIFFERENCES: dict[str, Callable[[str], str]] = {
    "case": str.casefold,
    "characters that show nothing": lambda text: "".join(
        sign for sign in text if unicodedata.category(sign) != "Cf" and ord(sign) not in FILLERS
    ).casefold(),
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text).casefold(),
    "dashes or quotes": lambda text: text.translate(MARKS),
    "letters of another script": lambda text: text.translate(LETTERS),
    "blanks": lambda text: " ".join(text.split()),
}


RARENESS = 5  # times as many rows has the label that a typing error is of
MAX_TARGETS = 20_000  # labels whose typing errors are looked for, the most frequent ones
MAX_THOROUGH = 1_000  # labels; with more, words with two errors aren't looked for
WORDS = re.compile(r"[^\W\d_]+|\d+")
# Letters of a word that may have one error, and two: other short words differ by as little.
ONE_ERROR, TWO_ERRORS, MAX_LETTERS = 4, 8, 40


def describe_typing_errors(counts: Counts, known: Counts | None = None) -> list[str]:
    """Describe labels that may be typing errors in one line; an empty list if there are none."""
    pairs = find_typing_errors(counts, known)
    if not pairs:
        return []
    told = [
        f"{name_label(label, counts)} may be {name_label(other, counts)}"
        for label, other in pairs[:SHOWN_PAIRS]
    ]
    if len(pairs) > SHOWN_PAIRS:
        told.append(f"and {len(pairs) - SHOWN_PAIRS:,} more")
    return [f"labels that may be typing errors: {'; '.join(told)}. Correct them if they are"]


def find_typing_errors(counts: Counts, known: Counts | None = None) -> list[tuple[str, str]]:
    """Find rare labels that may be typing errors of frequent ones; return pairs of them.

    They differ in the marks between words, or in one word: by a letter that is left out, added,
    exchanged or swapped with the next one, or in a long word by two of these. The first letter is
    right, as it almost always is. Labels unknown to a model are compared with its own, if given.

    Only labels that are alike after letters were left out of both are compared.

    Source: Damerau, "A technique for computer detection and correction of spelling errors",
    Communications of the ACM 7 (1964); Bocek et al., "Fast similarity search in large
    dictionaries" (2007).
    """
    least = RARENESS * min(counts.values(), default=0)
    ordered = sorted(counts, key=lambda label: -counts[label])
    targets = list(known or (label for label in ordered if counts[label] >= least))[:MAX_TARGETS]
    is_thorough = len(targets) <= MAX_THOROUGH
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for label in targets:
        for key, word in list_keys(label, is_thorough=is_thorough):
            found[key].append((label, word))
    pairs: dict[str, str] = {}
    for label in counts if found else ():
        if known is not None and label in known:
            continue
        for key, word in list_keys(label, is_thorough=is_thorough):
            for other, right in found.get(key, ()):
                is_frequent = known is not None or counts[other] >= RARENESS * counts[label]
                if is_frequent and is_error(word, right) and find_form(label) != find_form(other):
                    pairs.setdefault(label, other)
    return list(pairs.items())


def list_keys(label: str, *, is_thorough: bool) -> Iterator[tuple[str, str]]:
    """Yield what a label shares with its typing errors, and the word that has the error."""
    words = WORDS.findall(find_form(label))
    yield "".join(words), ""
    for place, word in enumerate(words):
        if count_errors(word):
            before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
            shorter = leave_out({word})
            if is_thorough and count_errors(word) > 1:
                shorter |= leave_out(shorter)
            yield from ((f"{before}\0{part}\0{after}", word) for part in (word, *sorted(shorter)))


def leave_out(words: set[str]) -> set[str]:
    """Leave out one letter of each word, except the first one."""
    return {word[:place] + word[place + 1 :] for word in words for place in range(1, len(word))}


def count_errors(word: str) -> int:
    """Return how many typing errors a word may have; none in numbers and ideographs."""
    if (
        not word.isalpha()
        or not ONE_ERROR <= len(word) <= MAX_LETTERS
        or count_columns(word) > len(word)
    ):
        return 0
    return 2 if len(word) >= TWO_ERRORS else 1


def is_error(word: str, right: str) -> bool:
    """Whether two words differ by as many typing errors as the shorter one may have."""
    if not word or not right:  # only the marks between words differ
        return word == right
    return 0 < measure_distance(word, right) <= count_errors(min(word, right, key=len))


def measure_distance(word: str, other: str) -> int:
    """Count letters left out, added, exchanged, or swapped with the next: Damerau's distance."""
    rows: list[Sequence[int]] = [range(len(other) + 1)]
    for number, letter in enumerate(word, start=1):
        row = [number]
        for place, wanted in enumerate(other, start=1):
            least = min(rows[-1][place] + 1, row[-1] + 1, rows[-1][place - 1] + (letter != wanted))
            if (
                number > 1
                and place > 1
                and word[number - 2] == wanted
                and letter == other[place - 2]
            ):
                least = min(least, rows[-2][place - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]
