"""Detokenization: WordPiece tokens to text, with spaces around punctuation as people write them."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertkit.base.errors import DamagedFileError
from bertkit.tokenization.engine import CONTINUATION, SPECIAL_TOKENS, UNK
from bertkit.tokenization.spacing_rules import (
    NUM_WIDER,
    SpacingRule,
    alternates,
    default_spacing_rule,
    find_sign,
    is_inside,
    learn_spacing_rules,
    list_contexts,
)

UNKNOWN = "\N{REPLACEMENT CHARACTER}"  # replaces [UNK]
MAX_HABITS = 1_000_000  # most rules that a foreign file may have


@dataclass(frozen=True)
class Spacing:
    """Rules for the spaces around punctuation, learned from text.

    Attributes:
        habits: the rule of each context (`spacing_rules.list_contexts`); a mark without a rule
            follows the default of its Unicode category.
    """

    habits: Mapping[str, SpacingRule] = field(default_factory=dict)

    @classmethod
    def learn(cls, texts: Iterable[str]) -> "Spacing":
        """Learn the rules from real text; only the first three million characters are read."""
        return cls(learn_spacing_rules(texts))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Spacing":
        """Restore the rules from the result of `to_dict`."""
        if len(values) > MAX_HABITS:
            raise DamagedFileError(f"spacing has {len(values):,} habits; at most {MAX_HABITS:,}")
        return cls({context: _read_habit(context, value) for context, value in values.items()})

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the rules for JSON: context → [side or sides without a space, frequency]."""
        return {context: list(habit) for context, habit in self.habits.items()}

    def join(self, pieces: Sequence[str]) -> str:
        """Join vocabulary entries into text.

        [UNK] becomes U+FFFD; other special tokens are left out. The text is NFC-normalized, because
        an uncased vocabulary holds decomposed letters, for example of Korean.
        """
        return unicodedata.normalize("NFC", self.lay_out(pieces))

    def lay_out(self, pieces: Sequence[str]) -> str:
        """Like `join` without NFC, so that each piece can be found in the text as it is."""
        words = join_word_pieces(pieces)
        habits = self._find_habits(words)
        text = words[0] if words else ""
        for place in range(1, len(words)):
            left, right = habits[place - 1], habits[place]
            text += " " + words[place] if _is_apart(left, right) else words[place]
        return text

    def _find_habits(self, words: Sequence[str]) -> list[SpacingRule | None]:
        """Find the rule for each mark in its context; None for other words."""
        found: list[SpacingRule | None] = []
        unmatched: set[str] = set()
        padded = ["", *words, ""]
        for place, word in enumerate(words):
            mark = find_sign(word)
            if mark is None:
                found.append(None)
                continue
            neighbors = padded[place], padded[place + 2]
            is_second = mark in unmatched and alternates(mark, self.habits)
            habit = self._find_habit(mark, is_second, *neighbors)
            found.append(habit)
            if not is_inside(*neighbors, habit.leaning):
                unmatched ^= {mark}
        return found

    def _find_habit(self, mark: str, is_second: bool, before: str, behind: str) -> SpacingRule:
        """Return the rule of the narrowest context that has one."""
        contexts = list_contexts(mark, is_second, before, behind)
        beside_words = [self.habits[each] for each in contexts[NUM_WIDER:] if each in self.habits]
        if beside_words:
            return max(beside_words, key=lambda habit: habit.share)
        wider = (self.habits[each] for each in contexts[NUM_WIDER - 1 :: -1] if each in self.habits)
        return next(wider, None) or default_spacing_rule(mark, is_second)


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


def _is_apart(left: SpacingRule | None, right: SpacingRule | None) -> bool:
    """Whether a space goes between two words; between two marks, both rules must allow it."""
    return (left is None or left.has_blank_behind) and (right is None or right.has_blank_before)


def _read_habit(context: str, value: object) -> SpacingRule:
    """Parse a rule as `to_dict` writes it."""
    match value:
        case ["left" | "right" | "both" | "none" as leaning, float(share) | int(share)]:
            return SpacingRule(leaning, float(share))
    raise DamagedFileError(
        f"spacing has {value!r:.40} for {context!r:.40}; expected left, right, both or none, and a"
        " share"
    )
