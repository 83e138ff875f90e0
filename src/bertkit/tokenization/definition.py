"""What the files of a tokenizer define: its algorithm, entries, special tokens and template."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bertkit.tokenization.encoding import Template
from bertkit.tokenization.names import OF_BERT, Kind, Object, SpecialTokens
from bertkit.tokenization.piece_tables import PieceFile
from bertkit.tokenization.settings import UNCASED, UNCHANGED, TokenizerSettings

PARTS_OF_ALGORITHM = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "model")


@dataclass(frozen=True)
class Definition:
    """A tokenizer as its files define it.

    Attributes:
        kind: the algorithm that cuts words into pieces.
        vocabulary: the entries in the order of their ids, added ones too.
        special: the special tokens by their use.
        controls: all entries that text never becomes: the special tokens, and others that a file
            lists and no encoder of its kind uses, such as `<s>NOTUSED`.
        added: entries that are found in texts before words are, such as runs of spaces.
        template: the special tokens around texts.
        settings: how WordPiece normalizes text; all false for the others, whose file says it.
        file: the checked content of `tokenizer.json`; None for WordPiece, whose entries are all.
        source: the content of `tokenizer.json`; empty for BERT's WordPiece, which bertkit writes.
        config: the content of `tokenizer_config.json`.
    """

    kind: Kind
    vocabulary: tuple[str, ...]
    special: SpecialTokens
    controls: frozenset[str]
    added: frozenset[str]
    template: Template
    settings: TokenizerSettings = UNCHANGED
    file: PieceFile | None = None
    source: str = ""
    config: Object | None = None

    @classmethod
    def of_bert(
        cls, vocabulary: Sequence[str], settings: TokenizerSettings = UNCASED
    ) -> "Definition":
        """Build the definition of BERT's WordPiece from a checked vocabulary."""
        entries = tuple(vocabulary)
        template = Template.of_bert(entries.index(OF_BERT.cls), entries.index(OF_BERT.sep))
        return cls(
            "WordPiece", entries, OF_BERT, frozenset(OF_BERT), frozenset(), template, settings
        )

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each entry."""
        if self.file is not None:
            return self.file.ids
        return {token: index for index, token in enumerate(self.vocabulary)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that decides which ids a text has."""
        parts: Sequence[str]
        if self.source:
            content = json.loads(self.source)
            parts = [json.dumps([content.get(name) for name in PARTS_OF_ALGORITHM])]
        else:
            parts = (self.settings.fingerprint(), *self.vocabulary)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
