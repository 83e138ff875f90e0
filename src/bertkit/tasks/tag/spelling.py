"""How tags spell entities: the scheme, other spellings of it, and stray tags among them."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from bertkit.metrics.entities import MEANINGS, OUTSIDE, Scheme

LETTERS = "".join(MEANINGS)
USUAL = re.compile(rf"[{LETTERS}](-.*)?", re.DOTALL)
# As some files and tools write B-PER: B_PER, b-per, PER-B, per_b.
PREFIXED = re.compile(rf"(?P<letter>[{LETTERS}])([-_](?P<type>.+))?", re.DOTALL | re.IGNORECASE)
SUFFIXED = re.compile(rf"(?P<type>.+)[-_](?P<letter>[{LETTERS}])", re.DOTALL | re.IGNORECASE)
WORDS_PER_STRAY = 10  # a tag that marks no entity is a slip if it is this rare among those that do


@lru_cache(maxsize=4096)
def spell(tag: str) -> str | None:
    """Spell an entity tag as usual, `B-PER`, whatever its spelling; None if it isn't one."""
    if USUAL.fullmatch(tag):
        return tag
    found = PREFIXED.fullmatch(tag) or SUFFIXED.fullmatch(tag)
    if found is None:
        return None
    return found["letter"].upper() + (f"-{found['type']}" if found["type"] else "")


def find_scheme(labels: Collection[str]) -> Scheme | None:
    """Detect the scheme by which labels mark entities; None if they don't."""
    letters = {label.partition("-")[0] for label in labels}
    has_types = all("-" in label for label in labels)
    if not letters <= MEANINGS.keys() or not (OUTSIDE in labels or has_types):
        return None
    if letters & {"L", "U"}:
        return "BILOU"
    if "M" in letters:
        return "BMES"
    return "BIOES" if letters & {"E", "S"} else "BIO"


def choose_labels(counts: Mapping[str, int]) -> set[str]:
    """Return the labels to learn from the number of words with each tag.

    Where the tags mark entities, these are the tags in the usual spelling, without the few that
    mark none: typing errors, such as the digit 0 for the letter O. Else all tags as they are.
    """
    spelled = Counter[str]()
    for tag, count in counts.items():
        spelled[spell(tag) or ""] += count
    num_strays = spelled.pop("", 0)
    num_marked = spelled.total() - spelled[OUTSIDE]
    is_slip = num_strays <= max(1, num_marked // WORDS_PER_STRAY) and num_strays < num_marked
    labels = set(spelled)
    return labels if is_slip and _mark_entities(labels, counts) else set(counts)


def spell_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Spell a model's labels as usual if all mark entities; else return them as they are."""
    spelled = tuple(spell(label) or "" for label in labels)
    is_usable = "" not in spelled and len(set(spelled)) == len(spelled)
    return spelled if is_usable and _mark_entities(spelled, labels) else tuple(labels)


def list_strays(tags: Collection[str]) -> list[str]:
    """Return the tags by which a file's tags don't mark entities; empty if those are most."""
    strays = sorted(tag for tag in tags if spell(tag) is None)
    typed = [tag for tag in tags if "-" in (spell(tag) or "")]
    return strays if len(strays) <= len(typed) else []


def _mark_entities(spelled: Collection[str], tags: Collection[str]) -> bool:
    """Whether tags mark entities, given how they are spelled as usual.

    Another spelling needs an O and a B: some plain tags end in -S or _M too.
    """
    is_usual = set(spelled) <= set(tags)
    is_clear = OUTSIDE in spelled and any(tag.startswith("B") for tag in spelled)
    return (is_usual or is_clear) and find_scheme(spelled) is not None
