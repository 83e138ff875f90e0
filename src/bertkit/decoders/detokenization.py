"""Detokenization: WordPiece tokens to text, with spaces around punctuation as people write them."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple

from bertkit.base.errors import DamagedFileError
from bertkit.tokenization.engine import CONTINUATION, SPECIAL_TOKENS, UNK

Attachment = Literal["left", "right", "both", "none"]
ATTACHMENTS: dict[tuple[bool, bool], Attachment] = {  # key: is a space before, is one after
    (False, True): "left",
    (True, False): "right",
    (False, False): "both",
    (True, True): "none",
}

MIN_COUNT = 3  # occurrences that a context needs to get a rule
MIN_WEIGHT = 0.1  # total weight it needs; see `_count` for how occurrences are weighted
MAX_CHARS = 3_000_000  # characters to read; more text no longer changes the rules
EDGE, WORD, IDEOGRAPH = "<edge>", "<word>", "<ideograph>"  # "<" is a mark, so no word contains it
MAX_DIGITS = 4  # after a mark, numbers with this many digits or more count as one kind
NUM_WIDER = 3  # number of contexts without words, each wider than the next

# Defaults for marks never seen in training, where the Unicode category doesn't decide.
DEFAULTS: dict[str, Attachment] = {
    **dict.fromkeys("#$@¡¿`", "right"),
    **dict.fromkeys("&*+<=>|~", "none"),
    **dict.fromkeys("'’/\\^", "both"),
    IDEOGRAPH: "both",
}
DEFAULT_OF_CATEGORY: dict[str, Attachment] = {
    "Ps": "right",
    "Pi": "right",
    "Pd": "both",
    "Pc": "both",
}


class SpacingRule(NamedTuple):
    """How a mark is spaced in some context."""

    attachment: Attachment  # the sides without a space; `none` has a space on both
    share: float  # of occurrences that follow the rule


@lru_cache(maxsize=1 << 16)
def split_chunk(chunk: str) -> tuple[str, ...]:
    """Split a text without spaces into words and marks, as BERT's algorithm does."""
    words = [""]
    for character in chunk:
        if is_mark(character) or is_ideograph(character):
            words += [character, ""]
        else:
            words[-1] += character
    return tuple(word for word in words if word)


def is_mark(character: str) -> bool:
    """Whether BERT's algorithm makes a character a separate word because it is punctuation."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


def is_ideograph(character: str) -> bool:
    """Whether BERT's algorithm makes a character a separate word because it is Chinese."""
    code = ord(character)
    return code >= 0x3400 and (
        code <= 0x4DBF
        or 0x4E00 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x2CEAF
        or 0x2F800 <= code <= 0x2FA1F
    )


@lru_cache(maxsize=1 << 16)
def find_mark(word: str) -> str | None:
    """Return a mark itself, `IDEOGRAPH` for a Chinese character, None for any other word."""
    if len(word) != 1:
        return None
    if is_ideograph(word):
        return IDEOGRAPH
    return word if is_mark(word) else None


@lru_cache(maxsize=1 << 16)
def _find_kind(word: str, max_digits: int) -> str:
    """Return the kind of a mark's neighbor: word, mark, number or edge of the text."""
    if not word:
        return EDGE
    if word.isdigit():
        return f"<{'0' * min(len(word), max_digits)}>"
    return find_mark(word) or WORD


def list_contexts(mark: str, is_second: bool, before: str, after: str) -> list[str]:
    """List a mark's contexts, the widest first; those after the third include a neighboring word.

    A word that isn't there is empty. `is_second` says whether the same mark occurred before and is
    still unmatched.
    """
    occurrence = f"{mark} {int(is_second)}"
    kind_before, kind_after = _find_kind(before, 1), _find_kind(after, MAX_DIGITS)
    found = [mark, occurrence, f"{occurrence} {kind_before} {kind_after}"]
    if kind_before == WORD:
        found.append(f"{occurrence} ={before.lower()} {kind_after}")
    if kind_after == WORD:
        found.append(f"{occurrence} {kind_before} ={after.lower()}")
    return found


def is_inside(before: str, after: str, attachment: Attachment) -> bool:
    """Whether a mark is inside a word or number, as in man's, and so neither opens nor closes."""
    return attachment == "both" and all(
        word and find_mark(word) is None for word in (before, after)
    )


def alternates(mark: str, rules: Mapping[str, SpacingRule]) -> bool:
    """Whether the rules for the first and second of a mark differ, or the mark has no rules."""
    return mark not in rules or any(f"{mark} {number}" in rules for number in (0, 1))


def _count(marks: Sequence[tuple[list[str], Attachment]]) -> dict[str, SpacingRule]:
    """Learn rules from marks that are given as their contexts and their attachment.

    For each context, an occurrence weighs 1 / the frequency of the mark's other narrow context. So
    a thousand words before 's weigh a thousandth each and get no rule of their own for what the s
    causes, and an apostrophe beside unseen words follows the rule that holds beside rare ones.

    Source: Kneser and Ney 1995, for counting types instead of occurrences when backing off.
    """
    frequencies = Counter(chain.from_iterable(contexts for contexts, _ in marks))
    weights: dict[str, defaultdict[Attachment, float]] = {}
    wider = {}
    for contexts, attachment in marks:
        narrow = contexts[NUM_WIDER:] or contexts[NUM_WIDER - 1 :]
        for number, context in enumerate(contexts):
            others = (frequencies[each] for each in narrow if each != context)
            found = weights.setdefault(context, defaultdict(float))
            found[attachment] += 1 / max(others, default=1)
            wider[context] = contexts[min(number, NUM_WIDER) - 1] if number else ""
    rare = {context for context, count in frequencies.items() if count < MIN_COUNT}
    return _drop_redundant(weights, wider, rare)


def _drop_redundant(
    weights: Mapping[str, Mapping[Attachment, float]], wider: Mapping[str, str], rare: Set[str]
) -> dict[str, SpacingRule]:
    """Keep the rules that differ from that of the next wider context; sorted by context."""
    best: dict[str, Attachment | None] = {"": None}
    kept = {}
    for context, found in weights.items():  # wider contexts come first
        inherited = best[wider[context]]
        total = sum(found.values())
        if context in rare or total < MIN_WEIGHT:
            best[context] = inherited
            continue
        attachment = max(sorted(found), key=lambda each: (found[each], each == inherited))
        best[context] = attachment
        if attachment != inherited:
            kept[context] = SpacingRule(attachment, round(found[attachment] / total, 4))
    return dict(sorted(kept.items()))


def _list_marks(texts: Iterable[str]) -> Iterator[tuple[tuple[str, bool, str, str], Attachment]]:
    """Yield each mark as arguments of `list_contexts`, with its attachment."""
    num_chars = 0
    for text in texts:
        words: list[str] = []
        spaces = [True]  # before each word, and at the end
        for chunk in text.split():
            parts = split_chunk(chunk)
            words += parts
            spaces += [False] * (len(parts) - 1) + [True]
        unmatched: set[str] = set()
        padded = ["", *words, ""]
        for place, word in enumerate(words):
            if (mark := find_mark(word)) is not None:
                neighbors = padded[place], padded[place + 2]
                attachment = ATTACHMENTS[spaces[place], spaces[place + 1]]
                yield (mark, mark in unmatched, *neighbors), attachment
                if not is_inside(*neighbors, attachment):
                    unmatched ^= {mark}
        num_chars += len(text)
        if num_chars > MAX_CHARS:
            return


UNKNOWN = "\N{REPLACEMENT CHARACTER}"  # replaces [UNK]
MAX_RULES = 1_000_000  # most rules that a foreign file may have


@dataclass(frozen=True)
class Spacing:
    """Rules for the spaces around punctuation, learned from text.

    Attributes:
        rules: the rule of each context of a mark (`list_contexts`); a mark without a rule follows
            `DEFAULTS`, or else its Unicode category.
    """

    rules: Mapping[str, SpacingRule] = field(default_factory=dict)

    @classmethod
    def fit(cls, texts: Iterable[str]) -> "Spacing":
        """Learn the rules from real text; only the first three million characters are read.

        A context has a rule if it differs from that of the next wider context.
        """
        marks = list(_list_marks(texts))
        first_rules = _count([(list_contexts(*mark), attachment) for mark, attachment in marks])
        known = []
        for (mark, is_second, *neighbors), attachment in marks:
            is_second = is_second and alternates(mark, first_rules)
            known.append((list_contexts(mark, is_second, *neighbors), attachment))
        return cls(_count(known))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Spacing":
        """Restore the rules from the result of `to_dict`."""
        if len(values) > MAX_RULES:
            raise DamagedFileError(f"spacing has {len(values):,} rules; the limit is {MAX_RULES:,}")
        rules = {}
        for context, value in values.items():
            match value:
                case ["left" | "right" | "both" | "none" as attachment, float(share) | int(share)]:
                    rules[context] = SpacingRule(attachment, float(share))
                case _:
                    raise DamagedFileError(
                        f"spacing has {value!r:.40} for {context!r:.40}; expected left, right, both"
                        " or none, and a share"
                    )
        return cls(rules)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the rules for JSON: context → [side or sides without a space, frequency]."""
        return {context: list(rule) for context, rule in self.rules.items()}

    def join(self, pieces: Sequence[str], *, normalize: bool = True) -> str:
        """Join vocabulary entries into text.

        [UNK] becomes U+FFFD; other special tokens are left out.

        Args:
            pieces: the entries.
            normalize: apply NFC, because an uncased vocabulary holds decomposed letters, for
                example of Korean. Without it, each piece can be found unchanged in the text.
        """
        words = join_word_pieces(pieces)
        rules = self._find_rules(words)
        text = words[0] if words else ""
        for word, (left, right) in zip(words[1:], pairwise(rules), strict=True):
            has_space = (left is None or left.attachment in {"left", "none"}) and (
                right is None or right.attachment in {"right", "none"}
            )
            text += f" {word}" if has_space else word
        return unicodedata.normalize("NFC", text) if normalize else text

    def _find_rules(self, words: Sequence[str]) -> list[SpacingRule | None]:
        """Find the rule for each mark in its context; None for other words."""
        found: list[SpacingRule | None] = []
        unmatched: set[str] = set()
        padded = ["", *words, ""]
        for place, word in enumerate(words):
            mark = find_mark(word)
            if mark is None:
                found.append(None)
                continue
            neighbors = padded[place], padded[place + 2]
            is_second = mark in unmatched and alternates(mark, self.rules)
            rule = self._find_rule(mark, is_second, *neighbors)
            found.append(rule)
            if not is_inside(*neighbors, rule.attachment):
                unmatched ^= {mark}
        return found

    def _find_rule(self, mark: str, is_second: bool, before: str, after: str) -> SpacingRule:
        """Return the rule of the narrowest context that has one, or else the default."""
        contexts = list_contexts(mark, is_second, before, after)
        beside_words = [self.rules[each] for each in contexts[NUM_WIDER:] if each in self.rules]
        if beside_words:
            return max(beside_words, key=lambda rule: rule.share)
        for context in contexts[NUM_WIDER - 1 :: -1]:
            if context in self.rules:
                return self.rules[context]
        if mark == '"':  # a mark that was never seen in training
            return SpacingRule("left" if is_second else "right", 0.5)
        category = unicodedata.category(mark) if len(mark) == 1 else ""
        return SpacingRule(DEFAULTS.get(mark) or DEFAULT_OF_CATEGORY.get(category, "left"), 0.5)


def join_word_pieces(pieces: Iterable[str]) -> list[str]:
    """Join `##` continuations to their words."""
    words: list[str] = []
    for piece in pieces:
        if piece == UNK:
            words.append(UNKNOWN)
        elif piece in SPECIAL_TOKENS:
            continue
        elif piece.startswith(CONTINUATION) and len(piece) > len(CONTINUATION):
            rest = piece.removeprefix(CONTINUATION)
            words[-1:] = [words[-1] + rest] if words else [rest]
        else:
            words.append(piece)
    return words
