"""Encoding of texts that contain [MASK]."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from bertkit.base.errors import InputError
from bertkit.inference.loading import LoadedModel, Model
from bertkit.inference.named_texts import NamedText

MASK = "[MASK]"


@dataclass(frozen=True)
class MaskedTexts:
    """Encoded texts with [MASK] tokens.

    Attributes:
        texts: the input texts.
        ids: token ids of each text, with [CLS] and [SEP].
    """

    texts: list[str]
    ids: list[list[int]]


def encode_masked(loaded: LoadedModel[Model], window: Sequence[NamedText]) -> MaskedTexts:
    """Encode texts without truncation; the parts between [MASK]s are tokenized separately."""
    tokenizer = loaded.tokenizer
    parts = [named.text.split(MASK) for named in window]
    pieces = iter(tokenizer.piece_ids(chain.from_iterable(parts)))
    sequences = []
    for named, own_parts in zip(window, parts, strict=True):
        ids = [tokenizer.cls_id]
        for _ in own_parts:
            ids += [*next(pieces), tokenizer.mask_id]
        ids[-1] = tokenizer.sep_id  # no [MASK] follows the last part
        name = f"{named.name} ({named.text[:40]!r})"
        loaded.check_text(name, len(ids), is_empty=len(ids) == 2)
        if len(own_parts) == 1:
            raise InputError(f"{name} has no {MASK}; write {MASK} where a word is to be filled in")
        sequences.append(ids)
    return MaskedTexts([named.text for named in window], sequences)
