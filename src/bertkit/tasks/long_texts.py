"""Encoding of texts and pairs: truncation or windows for long ones, and pooling of windows.

Source: google-research/bert `run_classifier.py` for pairs; Sun et al. 2019, "How to Fine-Tune BERT
for Text Classification?", section 5.3.1, for head and tail truncation.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.tasks.batch import TaskBatch, TokenSequence
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.texts import Texts
from bertkit.tokenization.encoding import cut_longest_first
from bertkit.tokenization.tokenizer import Tokenizer

HEAD_SHARE = 0.25  # 128 of 510 tokens in the paper

Ids = list[int]


class Reading(NamedTuple):
    """An encoded text or pair.

    Attributes:
        sequences: one, or windows.
        is_cut: whether tokens were left out.
    """

    sequences: tuple[TokenSequence, ...]
    is_cut: bool


def encode_texts(
    texts: Sequence[Texts], settings: TextSettings, tokenizer: Tokenizer
) -> list[Reading]:
    """Encode as `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`; long texts are cut or windowed."""
    firsts = tokenizer.piece_ids([each.text for each in texts])
    seconds = iter(tokenizer.piece_ids([each.pair for each in texts if each.pair is not None]))
    found = []
    for each, first in zip(texts, firsts, strict=True):
        parts = [first] if each.pair is None else [first, next(seconds)]
        windows, is_cut = _choose_windows(parts, settings)
        sequences = tuple(_join(window, tokenizer) for window in windows)
        found.append(Reading(sequences, is_cut))
    return found


def pool_windows(
    logits: Float[Tensor, "sequences labels"], batch: TaskBatch
) -> Float[Tensor, "examples labels"]:
    """Average the logits over each example's windows, in float32 or wider."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if len(scores) == len(batch.num_sequences):
        return scores
    parts = torch.split(scores, list(batch.num_sequences))
    return torch.stack([part.mean(dim=0) for part in parts])


def _choose_windows(parts: list[Ids], settings: TextSettings) -> tuple[list[list[Ids]], bool]:
    """Choose the parts of a text or pair to encode, and tell whether tokens were left out."""
    budget = settings.max_length - 1 - len(parts)
    if sum(map(len, parts)) <= budget:
        return [parts], False
    if settings.long_texts == "windows":
        return _slide(parts, budget, settings)
    sizes = cut_longest_first(len(parts[0]), sum(map(len, parts[1:])), budget)
    kept = [
        _keep(part, size, settings.long_texts)
        for part, size in zip(parts, sizes[: len(parts)], strict=True)
    ]
    return [kept], True


def _keep(ids: Ids, size: int, how: str) -> Ids:
    """Keep `size` tokens from the head of a text, its tail, or both."""
    if how == "head":
        return ids[:size]
    num_first = round(HEAD_SHARE * size) if how == "head_tail" and size < len(ids) else 0
    return ids[:num_first] + ids[len(ids) - size + num_first :]


def _slide(parts: list[Ids], budget: int, settings: TextSettings) -> tuple[list[list[Ids]], bool]:
    """Slide windows over the longer text; each repeats the other text, cut to half the budget."""
    longer = max(range(len(parts)), key=lambda place: len(parts[place]))
    whole = parts[longer]
    fixed = [part[: budget // 2] for part in parts]
    room = budget - sum(len(part) for place, part in enumerate(fixed) if place != longer)
    step = min(room, settings.stride or max(1, room // 2))
    starts = range(0, len(whole) - room + step, step)
    windows = []
    for start in starts[: settings.max_windows]:
        part = whole[start : start + room]
        windows.append([part if place == longer else other for place, other in enumerate(fixed)])
    is_short = any(
        len(fixed[place]) < len(part) for place, part in enumerate(parts) if place != longer
    )
    return windows, is_short or len(windows) < len(starts)


def _join(parts: Sequence[Ids], tokenizer: Tokenizer) -> TokenSequence:
    ids = [tokenizer.cls_id]
    ids += chain.from_iterable([*part, tokenizer.sep_id] for part in parts)
    segments = [0] * (len(parts[0]) + 2)
    segments += [1] * (len(ids) - len(segments))
    return TokenSequence(ids, segments)
