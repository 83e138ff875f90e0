"""Labels that look alike, and are different labels: the same word in another spelling."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, pairwise

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
    pairs = list(_pair_up(counts) if known is None else _pair_with(counts, known))
    if not pairs:
        return []
    told = [_tell(pair, counts) for pair in islice(pairs, SHOWN_PAIRS)]
    more = [f"and {len(pairs) - SHOWN_PAIRS:,} more"] if len(pairs) > SHOWN_PAIRS else []
    line = f"labels that look alike are different labels: {'; '.join([*told, *more])}"
    return [f"{line}. Use the same spelling if they mean the same"]


def find_form(label: str) -> str:
    """Return the normal form that a label shares with all labels that look like it."""
    if label.isascii():
        return " ".join(label.split()).casefold()
    for change in DIFFERENCES.values():
        label = change(label)
    return label


def _pair_up(counts: Counts) -> Iterator[tuple[str, str]]:
    """Yield pairs of successive labels with the same form."""
    by_form: defaultdict[str, list[str]] = defaultdict(list)
    for label in counts:
        by_form[find_form(label)].append(label)
    for group in by_form.values():
        yield from pairwise(group)


def _pair_with(counts: Counts, known: Counts) -> Iterator[tuple[str, str]]:
    """Yield unknown labels, each with a known label of the same form."""
    unknown = [label for label in counts if label not in known]
    by_form = {find_form(label): label for label in (known if unknown else ())}
    for label in unknown:
        if (other := by_form.get(find_form(label))) is not None:
            yield label, other


def _tell(pair: tuple[str, str], counts: Counts) -> str:
    """Describe both labels, how often each occurs, and the difference."""
    first, second = (
        f"'{show(label, SHOWN_COLUMNS)}'" + (f" ({counts[label]:,})" if label in counts else "")
        for label in pair
    )
    return f"{first} and {second} differ in {_name_difference(*pair)}"


def _name_difference(label: str, other: str) -> str:
    for name, change in DIFFERENCES.items():
        label, other = change(label), change(other)
        if label == other:
            return name
    raise AssertionError("labels that look alike have one form")


def _drop_invisible(text: str) -> str:
    return "".join(
        sign for sign in text if unicodedata.category(sign) != "Cf" and ord(sign) not in FILLERS
    )


# Kinds of differences between look-alikes, and the normalization that removes each, in order.
DIFFERENCES: dict[str, Callable[[str], str]] = {
    "case": str.casefold,
    "characters that show nothing": lambda text: _drop_invisible(text).casefold(),
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text).casefold(),
    "dashes or quotes": lambda text: text.translate(MARKS),
    "letters of another script": lambda text: text.translate(LETTERS),
    "blanks": lambda text: " ".join(text.split()),
}
