"""Encoding of texts that contain [MASK]."""

from collections.abc import Sequence
from itertools import chain

from bertkit.base.errors import InputError
from bertkit.inference.loading import LoadedModel, Model
from bertkit.inference.named_texts import NamedText

MASK = "[MASK]"


def encode_masked(
    loaded: LoadedModel[Model], window: Sequence[NamedText]
) -> list[tuple[str, list[int]]]:
    """Return each text with its token ids, not truncated; parts between [MASK]s are separate."""
    tokenizer = loaded.tokenizer
    parts = [named.text.split(MASK) for named in window]
    pieces = iter(tokenizer.piece_ids(chain.from_iterable(parts)))
    encoded = []
    for named, own_parts in zip(window, parts, strict=True):
        ids = [tokenizer.cls_id]
        for _ in own_parts:
            ids += [*next(pieces), tokenizer.mask_id]
        ids[-1] = tokenizer.sep_id  # no [MASK] follows the last part
        name = f"{named.name} ({named.text[:40]!r})"
        loaded.check_text(name, len(ids), is_empty=len(ids) == 2)
        if len(own_parts) == 1:
            raise InputError(f"{name} has no {MASK}; put {MASK} in place of the word to predict")
        encoded.append((named.text, ids))
    return encoded
