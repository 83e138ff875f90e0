"""To which side a punctuation mark leans, counted in real text.

WordPiece keeps no blanks: `man's`, `man 's` and `man ' s` are the same pieces. What is lost is, for
each mark, whether a blank stood before it and behind it. That is counted for each mark by itself,
for each mark that comes for the second time (a quotation that ends), between which kinds of
neighbours, and beside which word; a narrower context is kept where it says something else than the
wider one. So nothing here knows a language: `l'homme`, « oui », „ja“, 3.5 and "Hand- und" are
counts.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Leaning = Literal["left", "right", "both", "none"]
LEANINGS: dict[tuple[bool, bool], Leaning] = {  # by whether a blank is before and behind
    (False, True): "left",
    (True, False): "right",
    (False, False): "both",
    (True, True): "none",
}

MIN_COUNT = 3  # of a context that is believed
MAX_CHARS = 4_000_000  # of text that is counted; more of it changes nothing any more
EDGE, WORD, IDEOGRAPH = "<edge>", "<word>", "<ideograph>"  # no word has "<", which is a mark
MAX_DIGITS = 4  # numbers of so many digits, and of more, are alike

# How a mark leans that was never met, where its category in Unicode doesn't tell.
USUAL: dict[str, Leaning] = {
    **dict.fromkeys("#$@¡¿`", "right"),
    **dict.fromkeys("&*+<=>|~", "none"),
    **dict.fromkeys("'’/\\^", "both"),
    IDEOGRAPH: "both",
}
USUAL_OF_CATEGORY: dict[str, Leaning] = {
    "Ps": "right",
    "Pi": "right",
    "Pd": "both",
    "Pc": "both",
}


class Habit(NamedTuple):
    """What a mark does in some context.

    Attributes:
        leaning: the side where no blank is; `none` has one on both.
        share: how often it does so, from 0 to 1.
    """

    leaning: Leaning
    share: float

    @property
    def has_blank_before(self) -> bool:
        """Whether there is a blank before the mark."""
        return self.leaning in {"right", "none"}

    @property
    def has_blank_behind(self) -> bool:
        """Whether there is a blank behind the mark."""
        return self.leaning in {"left", "none"}


@lru_cache(maxsize=1 << 16)
def split_chunk(chunk: str) -> tuple[str, ...]:
    """The words and marks of a piece of text without blanks, as BERT's algorithm finds them."""
    words = [""]
    for character in chunk:
        if is_mark(character) or is_ideograph(character):
            words += [character, ""]
        else:
            words[-1] += character
    return tuple(word for word in words if word)


def is_mark(character: str) -> bool:
    """Whether BERT's algorithm makes a word of it for being punctuation."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


def is_ideograph(character: str) -> bool:
    """Whether BERT's algorithm makes a word of it for being a Chinese character."""
    code = ord(character)
    return code >= 0x3400 and (
        code <= 0x4DBF
        or 0x4E00 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x2CEAF
        or 0x2F800 <= code <= 0x2FA1F
    )


@lru_cache(maxsize=1 << 16)
def find_sign(word: str) -> str | None:
    """What is counted of a word that is a mark, or a Chinese character; None of any other."""
    if len(word) != 1:
        return None
    if is_ideograph(word):
        return IDEOGRAPH
    return word if is_mark(word) else None


@lru_cache(maxsize=1 << 16)
def find_kind(word: str) -> str:
    """What a word is as a neighbour: a mark itself, a number of so many digits, any other word."""
    if not word:
        return EDGE
    if word.isdigit():
        return f"<{'0' * min(len(word), MAX_DIGITS)}>"
    return find_sign(word) or WORD


def list_contexts(mark: str, is_second: bool, before: str, behind: str) -> list[str]:
    """A mark's contexts, the widest first; of the last two neither is wider than the other.

    Args:
        mark: its sign.
        is_second: whether the same mark came before and isn't matched yet.
        before: the word before it; empty at the beginning.
        behind: the word behind it; empty at the end.
    """
    turn = f"{mark} {int(is_second)}"
    kinds = find_kind(before), find_kind(behind)
    found = [mark, turn, f"{turn} {kinds[0]} {kinds[1]}"]
    if kinds[0] == WORD:
        found.append(f"{turn} ={before.lower()} {kinds[1]}")
    if kinds[1] == WORD:
        found.append(f"{turn} {kinds[0]} ={behind.lower()}")
    return found


def is_inside(before: str, behind: str, habit: Leaning) -> bool:
    """Whether a mark is part of a word, as in man's, and so neither opens nor closes anything."""
    return habit == "both" and find_kind(before) == WORD == find_kind(behind)


def guess_habit(mark: str, is_second: bool) -> Habit:
    """What a mark does that was never met."""
    if mark == '"':
        return Habit("left" if is_second else "right", 0.5)
    category = unicodedata.category(mark) if len(mark) == 1 else ""
    return Habit(USUAL.get(mark) or USUAL_OF_CATEGORY.get(category, "left"), 0.5)


def count_habits(texts: Iterable[str]) -> dict[str, Habit]:
    """What each mark does in each context in which that isn't what the next wider one says."""
    counts: dict[str, dict[Leaning, int]] = {}
    wider: dict[str, str] = {}
    for mark, is_second, neighbours, leaning in _list_marks(texts):
        contexts = list_contexts(mark, is_second, *neighbours)
        for number, context in enumerate(contexts):
            if context not in counts:
                counts[context] = {}
                wider[context] = contexts[min(number, 3) - 1] if number else ""
            found = counts[context]
            found[leaning] = found.get(leaning, 0) + 1
    return _keep_telling(counts, wider)


def _keep_telling(
    counts: Mapping[str, Mapping[Leaning, int]], wider: Mapping[str, str]
) -> dict[str, Habit]:
    """The contexts that say something else than the one that is next wider; sorted."""
    best: dict[str, Leaning | None] = {"": None}
    kept = {}
    for context, found in counts.items():  # a wider context is always met before
        leaning = max(sorted(found), key=lambda each: found[each])
        total = sum(found.values())
        best[context] = leaning if total >= MIN_COUNT else best[wider[context]]
        if best[context] != best[wider[context]]:
            kept[context] = Habit(leaning, round(found[leaning] / total, 4))
    return dict(sorted(kept.items()))


def _list_marks(texts: Iterable[str]) -> Iterator[tuple[str, bool, tuple[str, str], Leaning]]:
    """The marks of texts: sign, whether it is the second, words on both sides, and its leaning."""
    num_chars = 0
    for text in texts:
        words: list[str] = []
        blanks = [True]
        for chunk in text.split():
            parts = split_chunk(chunk)
            words += parts
            blanks += [False] * (len(parts) - 1) + [True]
        yield from _list_marks_of_one(words, blanks)
        num_chars += len(text)
        if num_chars > MAX_CHARS:
            return


def _list_marks_of_one(
    words: Sequence[str], blanks: Sequence[bool]
) -> Iterator[tuple[str, bool, tuple[str, str], Leaning]]:
    """The marks of a text; `blanks` are before each word and at the end."""
    unmatched: set[str] = set()
    padded = ["", *words, ""]
    for place, word in enumerate(words):
        mark = find_sign(word)
        if mark is None:
            continue
        neighbours = padded[place], padded[place + 2]
        leaning = LEANINGS[blanks[place], blanks[place + 1]]
        yield mark, mark in unmatched, neighbours, leaning
        if not is_inside(*neighbours, leaning):
            unmatched ^= {mark}
