"""Labels that a person takes for the same and a program doesn't: `Good`, `good` and `gооd`.

Each label is brought to a form step by step, and those that come to the same form look alike, so
that no label is compared with all others. Of letters that look alike, those of Cyrillic and Greek
are known that have the shape of a Latin one, small or large.

Source: Unicode Technical Standard 39, "Unicode Security Mechanisms", section 4, of whose table of
confusable characters this is a small part.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, pairwise

from bertkit.reports.text import show

# Small letters, for case is gone by then: в stands for b because В looks like B.
LETTERS = str.maketrans(
    "авеѕіјкмнорстухһԁԛԝ" + "αβεζηικμνορτυχ", "abesijkmhopctyxhdqw" + "abezhikmnoptyx"
)
MARKS = str.maketrans("‐‑‒–—―−‘’ʼ“”„", "-------'''\"\"\"")
# What shows nothing, beside characters of the category Cf: fillers and variation selectors.
FILLERS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0}
FILLERS |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
SHOWN_PAIRS, SHOWN_COLUMNS = 3, 40

Counts = Mapping[str, int]


def describe_look_alikes(counts: Counts, known: Counts | None = None) -> list[str]:
    """Labels that look alike, in a line for people; none where there are no such labels.

    Args:
        counts: how often each label is there.
        known: labels of a model with which those that it doesn't know are compared; by default
            all labels are compared with each other.
    """
    pairs = list(_pair_up(counts) if known is None else _pair_with(counts, known))
    if not pairs:
        return []
    told = [_tell(pair, counts) for pair in islice(pairs, SHOWN_PAIRS)]
    more = [f"and {len(pairs) - SHOWN_PAIRS:,} more"] if len(pairs) > SHOWN_PAIRS else []
    line = f"labels that look alike are different labels: {'; '.join([*told, *more])}"
    return [f"{line}. Spell them the same if they mean the same"]


def find_form(label: str) -> str:
    """What all labels have in common that look like this one."""
    if label.isascii():
        return " ".join(label.split()).casefold()
    for change in DIFFERENCES.values():
        label = change(label)
    return label


def _pair_up(counts: Counts) -> Iterator[tuple[str, str]]:
    """Labels beside the next one of the same form."""
    by_form: defaultdict[str, list[str]] = defaultdict(list)
    for label in counts:
        by_form[find_form(label)].append(label)
    for group in by_form.values():
        yield from pairwise(group)


def _pair_with(counts: Counts, known: Counts) -> Iterator[tuple[str, str]]:
    """Labels that aren't known beside a known one of the same form."""
    unknown = [label for label in counts if label not in known]
    by_form = {find_form(label): label for label in (known if unknown else ())}
    for label in unknown:
        if (other := by_form.get(find_form(label))) is not None:
            yield label, other


def _tell(pair: tuple[str, str], counts: Counts) -> str:
    """Both labels, how often each is there, and in what they differ."""
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


# What labels that look alike may differ in, and what does away with it, one after the other.
DIFFERENCES: dict[str, Callable[[str], str]] = {
    "case": str.casefold,
    "characters that show nothing": lambda text: _drop_invisible(text).casefold(),
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text).casefold(),
    "dashes or quotes": lambda text: text.translate(MARKS),
    "letters of another script": lambda text: text.translate(LETTERS),
    "blanks": lambda text: " ".join(text.split()),
}
