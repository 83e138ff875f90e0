"""Labels that are taken for different ones: spellings that look alike, and typing errors."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations, pairwise

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
Pairs = list[tuple[str, str]]


def describe_look_alikes(counts: Counts, known: Counts | None = None) -> list[str]:
    """Describe labels that look alike in one line, and typing errors in another, if there are any.

    Only labels unknown to a model are compared with its labels, if those are given.
    """
    lines = []
    if pairs := find_look_alikes(counts, known):
        told = list_pairs(pairs, counts, describe_difference)
        line = f"labels that look alike are different labels: {told}"
        lines.append(f"{line}. Use the same spelling if they mean the same")
    if pairs := find_typing_errors(counts, known):
        told = list_pairs(pairs, counts, lambda *_: "{} may be {}")
        lines.append(f"labels that may be typing errors: {told}. Correct them if they are")
    return lines


def list_pairs(pairs: Pairs, counts: Counts, phrase: Callable[[str, str], str]) -> str:
    """Tell the first pairs, each label with the number of its rows, and how many more there are."""
    told = []
    for pair in pairs[:SHOWN_PAIRS]:
        names = (
            f"'{show(label, SHOWN_COLUMNS)}'" + (f" ({counts[label]:,})" if label in counts else "")
            for label in pair
        )
        told.append(phrase(*pair).format(*names))
    more = [f"and {len(pairs) - SHOWN_PAIRS:,} more"] if len(pairs) > SHOWN_PAIRS else []
    return "; ".join((*told, *more))


def find_look_alikes(counts: Counts, known: Counts | None) -> Pairs:
    """Find pairs of labels of one form; of those unknown to a model with its own."""
    is_unknown = any(label not in known for label in counts) if known is not None else True
    compared = (counts if known is None else known) if is_unknown else ()
    by_form: defaultdict[str, list[str]] = defaultdict(list)
    for label in compared:
        by_form[find_form(label)].append(label)
    if known is None:
        return [pair for group in by_form.values() for pair in pairwise(group)]
    unknown = ((label, find_form(label)) for label in counts if label not in known)
    return [(label, by_form[form][-1]) for label, form in unknown if form in by_form]


def describe_difference(label: str, other: str) -> str:
    """Name the first kind of difference after whose removal two labels are equal."""
    for difference, change in DIFFERENCES.items():
        label, other = change(label), change(other)
        if label == other:
            return f"{{}} and {{}} differ in {difference}"
    raise ValueError(f"{label!r} and {other!r} don't look alike")


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
WORDS = re.compile(r"[^\W\d_]+|\d+")
# Letters of a word that may have one error, and two: other short words differ by as little.
ONE_ERROR, TWO_ERRORS, MAX_LETTERS = 4, 8, 30


def find_typing_errors(counts: Counts, known: Counts | None = None) -> Pairs:
    """Find rare labels that may be typing errors of frequent ones; return pairs of them.

    They differ in the marks between words, or in one word, by a letter or in a long word by two:
    left out, added, exchanged or moved. Both are then alike without as many letters. The first one
    is right, as it almost always is. Labels unknown to a model are compared with its own, if given.

    Source: Bocek et al., "Fast similarity search in large dictionaries" (2007).
    """
    least = RARENESS * min(counts.values(), default=0)
    ordered = sorted(counts, key=lambda label: -counts[label])
    found: defaultdict[str, list[str]] = defaultdict(list)
    for label in list(known or (one for one in ordered if counts[one] >= least))[:MAX_TARGETS]:
        for key in list_keys(label):
            found[key].append(label)
    pairs: dict[str, str] = {}
    for label in counts if found else ():
        if known is not None and label in known:
            continue
        for other in chain.from_iterable(found.get(key, ()) for key in list_keys(label)):
            is_frequent = known is not None or counts[other] >= RARENESS * counts[label]
            if is_frequent and find_form(label) != find_form(other):
                pairs.setdefault(label, other)
    return list(pairs.items())


def list_keys(label: str) -> Iterator[str]:
    """Yield what a label shares with its typing errors: itself without marks or some letters."""
    words = WORDS.findall(find_form(label))
    yield "".join(words)
    for place, word in enumerate(words):
        before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
        # Numbers and ideographs have no typing errors.
        is_read = word.isalpha() and count_columns(word) == len(word) <= MAX_LETTERS
        if is_read and len(word) >= ONE_ERROR:
            least = len(word) - (2 if len(word) >= TWO_ERRORS else 1)
            for size in range(len(word) - 1, least - 2, -1):
                for rest in combinations(word[1:], size):
                    yield f"{before}\0{word[0]}{''.join(rest)}\0{after}"
