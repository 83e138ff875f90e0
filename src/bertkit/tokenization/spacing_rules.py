"""To which side a punctuation mark leans, counted in real text.

WordPiece keeps no blanks: `man's`, `man 's` and `man ' s` are the same pieces. What is lost is, for
each mark, whether a blank stood before it and behind it. That is counted for each mark by itself,
for each mark that comes for the second time (a quotation that ends), between which kinds of
neighbors, and beside which word; a narrower context is kept where it says something else than the
wider one. So nothing here knows a language: `l'homme`, « oui », „ja“, 3.5 and "Hand- und" are
counts.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple

Attachment = Literal["left", "right", "both", "none"]
ATTACHMENTS: dict[tuple[bool, bool], Attachment] = {  # by whether a blank is before and behind
    (False, True): "left",
    (True, False): "right",
    (False, False): "both",
    (True, True): "none",
}

MIN_COUNT = 3  # of a context that is believed
MIN_WEIGHT = 0.1  # of what it says, where what other contexts explain hardly counts
MAX_CHARS = 3_000_000  # of text that is counted; more of it changes nothing any more
EDGE, WORD, IDEOGRAPH = "<edge>", "<word>", "<ideograph>"  # no word has "<", which is a mark
MAX_DIGITS = 4  # behind a mark, numbers of so many digits, and of more, are alike
NUM_WIDER = 3  # contexts without words, each wider than the next

# How a mark leans that was never met, where its category in Unicode doesn't tell.
USUAL: dict[str, Attachment] = {
    **dict.fromkeys("#$@¡¿`", "right"),
    **dict.fromkeys("&*+<=>|~", "none"),
    **dict.fromkeys("'’/\\^", "both"),
    IDEOGRAPH: "both",
}
USUAL_OF_CATEGORY: dict[str, Attachment] = {
    "Ps": "right",
    "Pi": "right",
    "Pd": "both",
    "Pc": "both",
}


class SpacingRule(NamedTuple):
    """What a mark does in some context.

    Attributes:
        leaning: the side where no blank is; `none` has one on both.
        share: how often it does so, from 0 to 1.
    """

    leaning: Attachment
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


def find_kinds(before: str, behind: str) -> tuple[str, str]:
    """What the words on both sides of a mark are: at a mark only that, for numbers how long."""
    return _find_kind(before, 1), _find_kind(behind, MAX_DIGITS)


@lru_cache(maxsize=1 << 16)
def _find_kind(word: str, max_digits: int) -> str:
    if not word:
        return EDGE
    if word.isdigit():
        return f"<{'0' * min(len(word), max_digits)}>"
    return find_sign(word) or WORD


def list_contexts(mark: str, is_second: bool, before: str, behind: str) -> list[str]:
    """A mark's contexts, the widest first; of those after the third none is wider than another.

    Args:
        mark: its sign.
        is_second: whether the same mark came before and isn't matched yet.
        before: the word before it; empty at the beginning.
        behind: the word behind it; empty at the end.
    """
    turn = f"{mark} {int(is_second)}"
    kinds = find_kinds(before, behind)
    found = [mark, turn, f"{turn} {kinds[0]} {kinds[1]}"]
    if kinds[0] == WORD:
        found.append(f"{turn} ={before.lower()} {kinds[1]}")
    if kinds[1] == WORD:
        found.append(f"{turn} {kinds[0]} ={behind.lower()}")
    return found


def is_inside(before: str, behind: str, habit: Attachment) -> bool:
    """Whether a mark is part of a word or number, as in man's: it neither opens nor closes."""
    return habit == "both" and all(word and find_sign(word) is None for word in (before, behind))


def default_spacing_rule(mark: str, is_second: bool) -> SpacingRule:
    """What a mark does that was never met."""
    if mark == '"':
        return SpacingRule("left" if is_second else "right", 0.5)
    category = unicodedata.category(mark) if len(mark) == 1 else ""
    return SpacingRule(USUAL.get(mark) or USUAL_OF_CATEGORY.get(category, "left"), 0.5)


def alternates(mark: str, habits: Mapping[str, SpacingRule]) -> bool:
    """Whether the second of a mark does something else than the first, as far as is known."""
    return mark not in habits or any(f"{mark} {turn}" in habits for turn in (0, 1))


def learn_spacing_rules(texts: Iterable[str]) -> dict[str, SpacingRule]:
    """What each mark does in each context in which that isn't what the next wider one says."""
    marks = list(_list_marks(texts))
    with_turns = _count([(list_contexts(*mark), leaning) for mark, leaning in marks])
    known = []
    for (mark, is_second, *neighbors), leaning in marks:
        is_second = is_second and alternates(mark, with_turns)
        known.append((list_contexts(mark, is_second, *neighbors), leaning))
    return _count(known)


def _count(marks: Sequence[tuple[list[str], Attachment]]) -> dict[str, SpacingRule]:
    """The habits of marks of which the contexts and the leaning are given.

    What another word beside the mark explains hardly counts: of a thousand words before 's, each
    counts for a thousandth, so that none of them is known for what the s does. And an apostrophe
    beside words that were never met does what it does beside rare ones.

    Source: Kneser and Ney 1995, for counting kinds and not occurrences in what is fallen back to.
    """
    frequencies = Counter(chain.from_iterable(contexts for contexts, _ in marks))
    weights: dict[str, defaultdict[Attachment, float]] = {}
    wider = {}
    for contexts, leaning in marks:
        narrow = contexts[NUM_WIDER:] or contexts[NUM_WIDER - 1 :]
        for number, context in enumerate(contexts):
            others = (frequencies[each] for each in narrow if each != context)
            found = weights.setdefault(context, defaultdict(float))
            found[leaning] += 1 / max(others, default=1)
            wider[context] = contexts[min(number, NUM_WIDER) - 1] if number else ""
    rare = {context for context, count in frequencies.items() if count < MIN_COUNT}
    return _keep_telling(weights, wider, rare)


def _keep_telling(
    weights: Mapping[str, Mapping[Attachment, float]], wider: Mapping[str, str], rare: Set[str]
) -> dict[str, SpacingRule]:
    """The contexts that say something else than the one that is next wider; sorted."""
    best: dict[str, Attachment | None] = {"": None}
    kept = {}
    for context, found in weights.items():  # the wider one always comes before
        usual = best[wider[context]]
        total = sum(found.values())
        if context in rare or total < MIN_WEIGHT:
            best[context] = usual
            continue
        leaning = max(sorted(found), key=lambda each: (found[each], each == usual))
        best[context] = leaning
        if leaning != usual:
            kept[context] = SpacingRule(leaning, round(found[leaning] / total, 4))
    return dict(sorted(kept.items()))


def _list_marks(texts: Iterable[str]) -> Iterator[tuple[tuple[str, bool, str, str], Attachment]]:
    """The marks of texts, as `list_contexts` takes them, and how each leans."""
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
) -> Iterator[tuple[tuple[str, bool, str, str], Attachment]]:
    """The marks of a text; `blanks` are before each word and at the end."""
    unmatched: set[str] = set()
    padded = ["", *words, ""]
    for place, word in enumerate(words):
        mark = find_sign(word)
        if mark is None:
            continue
        neighbors = padded[place], padded[place + 2]
        leaning = ATTACHMENTS[blanks[place], blanks[place + 1]]
        yield (mark, mark in unmatched, *neighbors), leaning
        if not is_inside(*neighbors, leaning):
            unmatched ^= {mark}
