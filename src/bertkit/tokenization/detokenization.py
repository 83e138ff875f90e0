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
    count_spacing_rules,
    default_spacing_rule,
    find_mark,
    is_inside,
    list_contexts,
)

UNKNOWN = "\N{REPLACEMENT CHARACTER}"  # replaces [UNK]
MAX_RULES = 1_000_000  # most rules that a foreign file may have


@dataclass(frozen=True)
class Spacing:
    """Rules for the spaces around punctuation, learned from text.

    Attributes:
        rules: the rule of each context (`spacing_rules.list_contexts`); a mark without a rule
            follows the default of its Unicode category.
    """

    rules: Mapping[str, SpacingRule] = field(default_factory=dict)

    @classmethod
    def fit(cls, texts: Iterable[str]) -> "Spacing":
        """Learn the rules from real text; only the first three million characters are read."""
        return cls(count_spacing_rules(texts))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Spacing":
        """Restore the rules from the result of `to_dict`."""
        if len(values) > MAX_RULES:
            raise DamagedFileError(f"spacing has {len(values):,} rules; the limit is {MAX_RULES:,}")
        return cls({context: _parse_rule(context, value) for context, value in values.items()})

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
        for place in range(1, len(words)):
            has_space = _has_space_between(rules[place - 1], rules[place])
            text += " " + words[place] if has_space else words[place]
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
        """Return the rule of the narrowest context that has one."""
        contexts = list_contexts(mark, is_second, before, after)
        beside_words = [self.rules[each] for each in contexts[NUM_WIDER:] if each in self.rules]
        if beside_words:
            return max(beside_words, key=lambda rule: rule.share)
        wider = (self.rules[each] for each in contexts[NUM_WIDER - 1 :: -1] if each in self.rules)
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


def _has_space_between(left: SpacingRule | None, right: SpacingRule | None) -> bool:
    """Whether a space goes between two words; between two marks, both rules must allow it."""
    return (left is None or left.attachment in {"left", "none"}) and (
        right is None or right.attachment in {"right", "none"}
    )


def _parse_rule(context: str, value: object) -> SpacingRule:
    """Parse a rule as `to_dict` writes it."""
    match value:
        case ["left" | "right" | "both" | "none" as attachment, float(share) | int(share)]:
            return SpacingRule(attachment, float(share))
    raise DamagedFileError(
        f"spacing has {value!r:.40} for {context!r:.40}; expected left, right, both or none, and a"
        " share"
    )
