"""How a word's vector changes with its context.

The names are those of Ethayarajh: a word's self-similarity at a layer is the mean cosine between
its vectors in different places; the less, the more specific to its context. Since all vectors of a
layer may point in about one direction (anisotropy), it says something only beside the mean cosine
of different words.

Source: Ethayarajh 2019, "How Contextual are Contextualized Word Representations?", sections 3.3
and 3.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.errors import InputError
from bertkit.interpret.geometry import Plane, project_layers
from bertkit.interpret.inspected_model import EncodedText, InspectedModel, Observation
from bertkit.tokenization.tokenizer import Tokenizer, check_texts


@dataclass(frozen=True, eq=False)
class Occurrence:
    """A place where a word stands.

    Attributes:
        passage: the text around it.
        tokens: the numbers of its tokens, from 0.
    """

    passage: EncodedText
    tokens: range

    @property
    def span(self) -> tuple[int, int]:
        """Where it stands in the text, as `text[start:stop]`."""
        offsets = self.passage.encoding.offsets
        return offsets[self.tokens[0]][0], offsets[self.tokens[-1]][1]


@dataclass(frozen=True, eq=False)
class WordInContexts:
    """A word in several places, at every layer.

    Attributes:
        word: as it was asked for.
        occurrences: its places, in the order of the texts.
        vectors: of each layer and place; of several pieces the mean. Layer 0 is what the embeddings
            give, where only its place in the text tells one from another.
        different_words: the mean cosine between tokens of different texts that aren't the same, at
            each layer; NaN where there are none.
    """

    word: str
    occurrences: tuple[Occurrence, ...]
    vectors: Float[Tensor, "layers places hidden"]
    different_words: Float[Tensor, " layers"]

    @cached_property
    def cosines(self) -> Float[Tensor, "layers places places"]:
        """Between its vectors in two places, from -1 to 1."""
        units = torch.nn.functional.normalize(self.vectors, dim=-1)
        return units @ units.mT

    @cached_property
    def self_similarity(self) -> Float[Tensor, " layers"]:
        """The mean cosine between its vectors in two different places."""
        places = len(self.occurrences)
        both_ways = self.cosines.sum(dim=(1, 2)) - self.cosines.diagonal(dim1=1, dim2=2).sum(dim=1)
        mean: Tensor = both_ways / (places * (places - 1))
        return mean

    @cached_property
    def planes(self) -> list[Plane]:
        """Its places on a plane at each layer, as in `project_layers`."""
        return project_layers(self.vectors)


def compare_contexts(subject: InspectedModel, word: str, texts: Sequence[str]) -> WordInContexts:
    """Read a word in several texts.

    Examples:
        model = InspectedModel.load("all-MiniLM-L6-v2/")
        bank = compare_contexts(model, "bank", ["The river bank.", "A bank lends money."])
        bank.cosines[-1]

    Args:
        subject: any model.
        word: a word, or several, found where the model reads it as here: an uncased model finds
            Bank and bank, none finds banks.
        texts: each has it at least once; all vectors of their tokens are in memory at a time.
    """
    check_texts(texts)
    ids = _read_word(word, subject.tokenizer)
    occurrences: list[Occurrence] = []
    vectors, others = [], []
    for number, text in enumerate(texts, start=1):
        passage = subject.read(text)
        places = find_word(passage, ids)
        if not places:
            raise InputError(f"the word {word!r:.40} isn't in text {number} ({text!r:.60})")
        observed = subject.observe(passage)
        vectors += [_average(observed, place) for place in places]
        others.append(_other_tokens(observed, places))
        occurrences += [Occurrence(passage, place) for place in places]
    if len(occurrences) < 2:
        raise InputError(f"the word {word!r:.40} must be in two places or more to be compared")
    return WordInContexts(
        word, tuple(occurrences), torch.stack(vectors, dim=1), compare_different(others)
    )


def find_word(passage: EncodedText, ids: Sequence[int]) -> list[range]:
    """Where a word stands in a passage, as numbers of tokens.

    Args:
        passage: the text.
        ids: of the word's pieces, the first of which begins a word.
    """
    found = []
    for start in range(1, len(passage.words) - len(ids)):
        stop = start + len(ids)
        ends = passage.words[stop] != passage.words[stop - 1]
        if ends and passage.encoding.ids[start:stop] == list(ids):
            found.append(range(start, stop))
    return found


def compare_different(
    texts: Sequence[tuple[Int[Tensor, " tokens"], Float[Tensor, "layers tokens hidden"]]],
) -> Float[Tensor, " layers"]:
    """The mean cosine between tokens of different texts that aren't the same.

    The sum over all pairs is the square of the vectors' sum, so no pair is looked at alone: pairs
    of one text and pairs of one token are taken away, and those of both, taken away twice, added.

    Args:
        texts: ids and vectors of each text's tokens.
    """
    ids = torch.cat([ids for ids, _ in texts])
    units = torch.nn.functional.normalize(torch.cat([rows for _, rows in texts], dim=1), dim=-1)
    owners = torch.arange(len(texts)).repeat_interleave(
        torch.tensor([len(ids) for ids, _ in texts])
    )
    total, count = torch.zeros(len(units), dtype=torch.float64), 0.0
    for sign, keys in (
        (1, torch.zeros_like(ids)),
        (-1, owners),
        (-1, ids),
        (1, ids * len(texts) + owners),
    ):
        _, groups, sizes = keys.unique(  # type: ignore[no-untyped-call]
            return_inverse=True, return_counts=True
        )
        sums = units.new_zeros(len(units), len(sizes), units.shape[-1])
        sums.index_add_(1, groups, units)
        total += sign * sums.double().square().sum(dim=(1, 2))
        count += sign * float(sizes.square().sum())
    return (total / count).float() if count else torch.full((len(units),), torch.nan)


def _read_word(word: str, tokenizer: Tokenizer) -> list[int]:
    """The pieces of a word."""
    check_texts([word])
    ids = tokenizer.piece_ids([word])[0]
    if not ids or tokenizer.unk_id in ids:
        raise InputError(
            f"the word {word!r:.40} can't be made of the vocabulary's entries; name another"
        )
    return ids


def _average(observed: Observation, place: range) -> Float[Tensor, "layers hidden"]:
    """A word's vector at every layer."""
    tokens = slice(place.start, place.stop)
    return torch.stack([state[tokens].mean(dim=0) for state in observed.states]).float().cpu()


def _other_tokens(
    observed: Observation, places: Sequence[range]
) -> tuple[Int[Tensor, " tokens"], Float[Tensor, "layers tokens hidden"]]:
    """Ids and vectors of the tokens that aren't the word and aren't special."""
    passage, left_out = observed.passage, {token for place in places for token in place}
    kept = [
        token for token, word in enumerate(passage.words) if word >= 0 and token not in left_out
    ]
    states = torch.stack([state[kept] for state in observed.states])
    return torch.tensor([passage.encoding.ids[token] for token in kept]), states.float().cpu()
