"""Unigram and byte-level BPE: the tables of pieces in `tokenizer.json`, and their engines."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from pydantic import JsonValue
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, processors

from bertkit.base.errors import InputError
from bertkit.tokenization.layout import (
    Known,
    build_byte_level,
    build_metaspace,
    build_normalizer,
    read_part,
)
from bertkit.tokenization.names import ENGINE_FILE, Kind, Object
from bertkit.tokenization.special_tokens import AddedEntry, read_added
from bertkit.tokenization.vocabulary import check_entries, check_size, order_entries

OFF = (None, False)
MODELS: Known = {
    "Unigram": {"unk_id": (), "vocab": (), "byte_fallback": OFF},
    "BPE": {
        "vocab": (),
        "merges": (),
        "unk_token": (),
        "dropout": (None,),
        "continuing_subword_prefix": (None, ""),
        "end_of_word_suffix": (None, ""),
        "fuse_unk": (*OFF, True),
        "byte_fallback": OFF,
        "ignore_merges": OFF,
    },
}
# Signs for the bytes that UTF-8 has; the others never are in a text.
NEVER_IN_TEXT = (0xC0, 0xC1, *range(0xF5, 0x100))


class PieceTable(NamedTuple):
    """The entries of a model.

    Attributes:
        entries: the pieces in the order of their ids.
        unknown: the entry of what no piece covers; None for BPE, which has pieces of all bytes.
        scores: of Unigram, the log probability of each piece.
        merges: of BPE, the pairs of pieces that become one, the first ones first.
    """

    entries: list[str]
    unknown: str | None
    scores: Sequence[float] = ()
    merges: Sequence[tuple[str, str]] = ()

    def build(self, spellings: list[str]) -> models.Model:
        """Build the model, in which the entries are spelled otherwise."""
        if self.scores:
            pairs = [*zip(spellings, self.scores, strict=True)]
            return models.Unigram(pairs, self.entries.index(str(self.unknown)), False)
        return models.BPE({piece: index for index, piece in enumerate(spellings)}, self.merges)


def read_unigram(model: Object, source: str) -> PieceTable:
    """Read a table of pieces and their log probabilities."""
    listed, unk_id = model.get("vocab"), model.get("unk_id")
    pairs = [
        (pair[0], float(pair[1]))
        for pair in (listed if isinstance(listed, list) else ())
        if isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int | float)
    ]
    if not isinstance(listed, list) or len(pairs) < len(listed):
        raise InputError(f"{source}: model.vocab must list pieces with their scores")
    if type(unk_id) is not int or not 0 <= unk_id < len(pairs):
        raise InputError(f"{source}: model.unk_id must be the id of an entry, got {unk_id!r:.80}")
    entries, scores = [piece for piece, _ in pairs], [score for _, score in pairs]
    return PieceTable(entries, entries[unk_id], scores=scores)


def read_byte_pairs(model: Object, source: str) -> PieceTable:
    """Read a table of pieces, which cover all bytes, and the merges that make them."""
    entries = order_entries(model.get("vocab"), source)
    unknown, known = model.get("unk_token"), set(entries)
    if missing := sorted(list_signs() - known):
        raise InputError(
            f"{source}: model.vocab lacks {missing[0]!r}, which is a byte; bertkit reads byte-level"
            " BPE alone"
        )
    merges = read_merges(model.get("merges"), known, source)
    return PieceTable(entries, unknown if isinstance(unknown, str) else None, merges=merges)


def read_merges(listed: JsonValue, known: set[str], source: str) -> list[tuple[str, str]]:
    """Read merges, each of two entries to a third: pairs, or texts with a space between."""
    if not isinstance(listed, list):
        raise InputError(f"{source}: model.merges must list pairs of pieces")
    check_size(len(listed), f"{source}: model.merges")
    merges = []
    for pair in listed:
        match pair.split(" ") if isinstance(pair, str) else pair:
            case [str(left), str(right)] if {left, right, left + right} <= known:
                merges.append((left, right))
            case _:
                raise InputError(
                    f"{source}: the merge {pair!r:.80} isn't of two entries to a third"
                )
    return merges


def list_signs() -> set[str]:
    """Return the characters that stand for the bytes of texts."""
    return {sign for byte, sign in enumerate(SIGNS) if byte not in NEVER_IN_TEXT}


def _order_signs() -> str:
    """Return the sign of each byte: printable ones as they are, the others from U+0100 on.

    Source: openai/gpt-2 `encoder.py`, `bytes_to_unicode`.
    """
    kept = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in kept else next(others)) for byte in range(256))


SIGNS = _order_signs()


READERS = {"Unigram": (read_unigram, build_metaspace), "BPE": (read_byte_pairs, build_byte_level)}


class PieceFile(NamedTuple):
    """The content of a `tokenizer.json` of Unigram or byte-level BPE, checked.

    Attributes:
        kind: the algorithm.
        table: the entries of the model.
        entries: the same, and behind them tokens that were added.
        ids: the id of each entry.
        added: tokens that are found in texts before words are.
        normalizer: what is done to texts first, as the file says it.
        pre_tokenizer: what cuts them into words.
    """

    kind: Kind
    table: PieceTable
    entries: list[str]
    ids: dict[str, int]
    added: list[AddedEntry]
    normalizer: JsonValue
    pre_tokenizer: JsonValue

    @classmethod
    def read(cls, kind: Kind, content: Object, source: str) -> "PieceFile":
        """Check the content of a file; InputError names what no published encoder has."""
        read_table, build_words = READERS[kind]
        model = content.get("model")
        given = {"type": kind, **(model if isinstance(model, dict) else {})}
        table = read_table(read_part(given, "model", source, MODELS)[1], source)
        added = read_added(content.get("added_tokens"), source)
        known = set(table.entries)
        behind = sorted((one for one in added if one.content not in known), key=lambda one: one.id)
        if behind and kind == "Unigram":
            raise InputError(
                f"{source}: the added token {behind[0].content!r:.80} isn't in the table of pieces;"
                " remove it there if that is intended"
            )
        entries = [*table.entries, *(one.content for one in behind)]
        ids = check_entries(entries, source, are_lines=False)
        for one in added:
            if ids[one.content] != one.id:
                raise InputError(
                    f"{source}: the added token {one.content!r:.80} isn't entry {one.id} of the"
                    " vocabulary, whose ids must follow each other without a gap"
                )
        parts = content.get("normalizer"), content.get("pre_tokenizer")
        build_normalizer(parts[0], source)
        build_words(parts[1], source)
        return cls(kind, table, entries, ids, added, *parts)

    def build_engine(self, controls: Collection[str]) -> Engine:
        """Build an engine of which no text becomes one of these entries."""
        # A word has no space, so no text has a piece that is spelled with one.
        mark = " " if self.kind == "Unigram" else ""
        engine = Engine(self.table.build([mark * (one in controls) + one for one in self.entries]))
        engine.normalizer = build_normalizer(self.normalizer, ENGINE_FILE)
        engine.pre_tokenizer = READERS[self.kind][1](self.pre_tokenizer, ENGINE_FILE)
        engine.decoder = decoders.Metaspace() if self.kind == "Unigram" else decoders.ByteLevel()
        if self.kind == "BPE":
            has_prefix = bool(getattr(engine.pre_tokenizer, "add_prefix_space", False))
            engine.post_processor = processors.ByteLevel(has_prefix, trim_offsets=True)
        kept = [one for one in self.added if one.content not in controls]
        engine.add_tokens([one.build() for one in kept])
        return engine
