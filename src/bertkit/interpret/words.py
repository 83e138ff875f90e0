"""Masked-LM predictions for each position of a text.

A position is predicted either with its token visible, or with that token replaced by [MASK], which
takes a separate pass for each position.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.progress import show_progress
from bertkit.inference.engines.choice import find_device
from bertkit.inference.fill_mask import Candidate
from bertkit.interpret.head_predictions import find_words
from bertkit.interpret.inspected_model import EncodedText, InspectedModel
from bertkit.nn.packing import PackedBatch

TOKENS_AT_A_TIME = 2048  # tokens of the masked copies of the text in one batch


@dataclass(frozen=True)
class PlaceWords:
    """The masked-LM predictions for one position.

    Attributes:
        place: the token's position, from 0.
        candidates: the most likely words, in descending order of probability.
        own_probability: the probability of the actual token, from 0 to 1.
        own_rank: the rank of the actual token: the number of words at least as likely; 1 is best.
    """

    place: int
    candidates: tuple[Candidate, ...]
    own_probability: float
    own_rank: int


@torch.inference_mode()
def read_words(
    inspected: InspectedModel, encoded: EncodedText, top_k: int = 10
) -> list[PlaceWords]:
    """Predict the word at each position except [CLS] and [SEP], with all tokens visible.

    Args:
        inspected: a model with a masked-LM head.
        encoded: the text.
        top_k: the number of candidates for each position.
    """
    tokens = inspected.model.encoder(encoded.pack().to(find_device(inspected.model)))
    places = [place for place, word in enumerate(encoded.words) if word >= 0]
    return _choose(inspected, encoded, places, tokens[places], top_k)


@torch.inference_mode()
def predict_words(
    inspected: InspectedModel, encoded: EncodedText, places: Sequence[int], top_k: int = 10
) -> list[PlaceWords]:
    """Predict the word at each position while that token alone is replaced by [MASK].

    Args:
        inspected: a model with a masked-LM head.
        encoded: the text.
        places: the positions of the tokens to mask, from 0.
        top_k: the number of candidates for each position.
    """
    found = []
    with show_progress("words hidden one by one", len(places)) as progress:
        size = max(1, TOKENS_AT_A_TIME // len(encoded.words))
        for start in range(0, len(places), size):
            chosen = places[start : start + size]
            hidden = _hide(inspected, encoded, chosen)
            found += _choose(inspected, encoded, chosen, hidden, top_k)
            progress.advance(len(chosen))
    return found


def _hide(
    inspected: InspectedModel, encoded: EncodedText, places: Sequence[int]
) -> Float[Tensor, "places hidden"]:
    """Return the hidden state of each position in a copy of the text with [MASK] there."""
    ids, length = encoded.encoding.ids, len(encoded.words)
    mask = [inspected.tokenizer.mask_id]
    copies = [[*ids[:place], *mask, *ids[place + 1 :]] for place in places]
    batch = PackedBatch.from_sequences(copies, [encoded.encoding.token_type_ids] * len(places))
    tokens: Tensor = inspected.model.encoder(batch.to(find_device(inspected.model)))
    return tokens[[copy * length + place for copy, place in enumerate(places)]]


def _choose(
    inspected: InspectedModel,
    encoded: EncodedText,
    places: Sequence[int],
    tokens: Float[Tensor, "places hidden"],
    top_k: int,
) -> list[PlaceWords]:
    """Return the most likely words for some positions, given their hidden states."""
    logarithms = find_words(inspected, tokens)
    own = logarithms[range(len(places)), [encoded.encoding.ids[place] for place in places]]
    ranks = (logarithms >= own[:, None]).sum(dim=-1)
    best = logarithms.exp().topk(min(top_k, logarithms.shape[1]))
    vocabulary = inspected.tokenizer.vocabulary
    candidates = [
        tuple(Candidate(vocabulary[id_], id_, share) for id_, share in zip(*row, strict=True))
        for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    rows = zip(places, candidates, own.exp().tolist(), ranks.tolist(), strict=True)
    return [PlaceWords(*row) for row in rows]
