"""Which words a masked-LM head would put at each place of a passage.

A place can be asked about as it is read, with its token in sight, or with that token hidden behind
[MASK], which takes a pass of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.progress import show_progress
from bertkit.inference.engines.choice import find_device
from bertkit.inference.fill_mask import Candidate
from bertkit.interpret.head_predictions import find_words
from bertkit.interpret.inspected_model import EncodedText, InspectedModel
from bertkit.nn.packing import PackedBatch

TOKENS_AT_A_TIME = 2048  # of copies of the passage, which are computed together


@dataclass(frozen=True)
class PlaceWords:
    """The words that a model would put at one place.

    Attributes:
        place: the token's, from 0.
        candidates: the likeliest words, the likeliest first.
        own_probability: of the token that stands there, from 0 to 1.
        own_rank: how many words are as likely as that token or likelier; 1 is the best.
    """

    place: int
    candidates: tuple[Candidate, ...]
    own_probability: float
    own_rank: int


@torch.inference_mode()
def read_words(subject: InspectedModel, passage: EncodedText, top_k: int = 10) -> list[PlaceWords]:
    """The words for each place but [CLS] and [SEP], each of which the model sees as it stands.

    Args:
        subject: a model with a masked-LM head.
        passage: what is read.
        top_k: candidates of each place.
    """
    tokens = subject.model.encoder(passage.pack().to(find_device(subject.model)))
    places = [place for place, word in enumerate(passage.words) if word >= 0]
    return _choose(subject, passage, places, tokens[places], top_k)


@torch.inference_mode()
def guess_words(
    subject: InspectedModel, passage: EncodedText, places: Sequence[int], top_k: int = 10
) -> list[PlaceWords]:
    """The words for each place while it alone is hidden behind [MASK]: a pass a place.

    Args:
        subject: a model with a masked-LM head.
        passage: what is read.
        places: tokens to hide, from 0.
        top_k: candidates of each place.
    """
    found = []
    with show_progress("words hidden one by one", len(places)) as progress:
        for chosen in _cut(places, max(1, TOKENS_AT_A_TIME // len(passage.words))):
            hidden = _hide(subject, passage, chosen)
            found += _choose(subject, passage, chosen, hidden, top_k)
            progress.advance(len(chosen))
    return found


def _cut(places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (places[start : start + size] for start in range(0, len(places), size))


def _hide(
    subject: InspectedModel, passage: EncodedText, places: Sequence[int]
) -> Float[Tensor, "places hidden"]:
    """The vector of each place in a copy of the passage that has [MASK] there."""
    ids, length = passage.encoding.ids, len(passage.words)
    mask = [subject.tokenizer.mask_id]
    copies = [[*ids[:place], *mask, *ids[place + 1 :]] for place in places]
    batch = PackedBatch.from_sequences(copies, [passage.encoding.token_type_ids] * len(places))
    tokens: Tensor = subject.model.encoder(batch.to(find_device(subject.model)))
    return tokens[[copy * length + place for copy, place in enumerate(places)]]


def _choose(
    subject: InspectedModel,
    passage: EncodedText,
    places: Sequence[int],
    tokens: Float[Tensor, "places hidden"],
    top_k: int,
) -> list[PlaceWords]:
    """The best words for some places, of the vectors that the model has for them."""
    logarithms = find_words(subject, tokens)
    own = logarithms[range(len(places)), [passage.encoding.ids[place] for place in places]]
    ranks = (logarithms >= own[:, None]).sum(dim=-1)
    best = logarithms.exp().topk(min(top_k, logarithms.shape[1]))
    names = _name(subject, best.indices, best.values)
    rows = zip(places, names, own.exp().tolist(), ranks.tolist(), strict=True)
    return [PlaceWords(*row) for row in rows]


def _name(
    subject: InspectedModel, ids: Int[Tensor, "places top_k"], shares: Float[Tensor, "places top_k"]
) -> list[tuple[Candidate, ...]]:
    vocabulary = subject.tokenizer.vocabulary
    rows = zip(ids.tolist(), shares.tolist(), strict=True)
    return [
        tuple(Candidate(vocabulary[id_], id_, share) for id_, share in zip(*row, strict=True))
        for row in rows
    ]
