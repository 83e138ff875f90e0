"""Labels that look alike, and are different labels: the same word in another spelling."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise

from bertkit.reports.text import show

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
    """Describe labels that look alike in one line; an empty list if there are none.

    Only labels unknown to a model are compared with its labels, if those are given.
    """
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
        first, second = (
            f"'{show(label, SHOWN_COLUMNS)}'" + (f" ({counts[label]:,})" if label in counts else "")
            for label in pair
        )
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
