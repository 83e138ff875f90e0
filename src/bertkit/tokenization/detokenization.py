"""Pieces of a vocabulary back to running text, with blanks where people put them."""

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

UNKNOWN = "\N{REPLACEMENT CHARACTER}"  # what stands for a word that the vocabulary lacks
MAX_HABITS = 1_000_000  # that a foreign file may have


@dataclass(frozen=True)
class Spacing:
    """Where blanks stand around punctuation in some kind of text.

    Attributes:
        habits: what marks do, by context (`spacing_rules.list_contexts`); a mark that has none does
            what marks of its kind usually do.
    """

    habits: Mapping[str, SpacingRule] = field(default_factory=dict)

    @classmethod
    def learn(cls, texts: Iterable[str]) -> "Spacing":
        """Count in real text what its marks do; of much text the first three million characters."""
        return cls(learn_spacing_rules(texts))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Spacing":
        """What `to_dict` gave."""
        if len(values) > MAX_HABITS:
            raise DamagedFileError(f"spacing has {len(values):,} habits; at most {MAX_HABITS:,}")
        return cls({context: _read_habit(context, value) for context, value in values.items()})

    def to_dict(self) -> dict[str, list[Any]]:
        """The habits as JSON has them: by context, where no blank is, and how often so."""
        return {context: list(habit) for context, habit in self.habits.items()}

    def join(self, pieces: Sequence[str]) -> str:
        """Running text of the pieces of a vocabulary.

        A word of which the vocabulary knows nothing is U+FFFD; other special tokens are left out.
        Letters are whole again (NFC) that an uncased vocabulary took apart, as those of Korean.
        """
        return unicodedata.normalize("NFC", self.lay_out(pieces))

    def lay_out(self, pieces: Sequence[str]) -> str:
        """As `join`, but every letter stands as it does in the pieces, so that it can be found."""
        words = join_word_pieces(pieces)
        habits = self._find_habits(words)
        text = words[0] if words else ""
        for place in range(1, len(words)):
            left, right = habits[place - 1], habits[place]
            text += " " + words[place] if _is_apart(left, right) else words[place]
        return text

    def _find_habits(self, words: Sequence[str]) -> list[SpacingRule | None]:
        """What each mark does where it stands; None for other words."""
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
        """The habit of the narrowest context that is known."""
        contexts = list_contexts(mark, is_second, before, behind)
        beside_words = [self.habits[each] for each in contexts[NUM_WIDER:] if each in self.habits]
        if beside_words:
            return max(beside_words, key=lambda habit: habit.share)
        wider = (self.habits[each] for each in contexts[NUM_WIDER - 1 :: -1] if each in self.habits)
        return next(wider, None) or default_spacing_rule(mark, is_second)


def join_word_pieces(pieces: Iterable[str]) -> list[str]:
    """The words of which pieces are parts."""
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
    """Whether a blank stands between two words; between two marks, whether both ask for it."""
    return (left is None or left.has_blank_behind) and (right is None or right.has_blank_before)


def _read_habit(context: str, value: object) -> SpacingRule:
    """A habit as `to_dict` writes it."""
    match value:
        case ["left" | "right" | "both" | "none" as leaning, float(share) | int(share)]:
            return SpacingRule(leaning, float(share))
    raise DamagedFileError(
        f"spacing has {value!r:.40} for {context!r:.40}; expected left, right, both or none, and a"
        " share"
    )
