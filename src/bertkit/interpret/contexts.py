"""Predicted words by position, and how a word's vector changes with its context.

The terms are Ethayarajh's: a word's self-similarity at a layer is the mean cosine between its
vectors in different contexts; lower values mean more context-specific vectors. All vectors of a
layer may point in roughly one direction (anisotropy), so compare it with the mean cosine of
different words.

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
from bertkit.base.progress import show_progress
from bertkit.inference.engines.torch_engine import find_device
from bertkit.inference.fill_mask import Candidate
from bertkit.interpret.geometry import Plane, project_layers
from bertkit.interpret.head_predictions import find_words
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.observation import EncodedText, PredictedWords
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import check_texts

TOKENS_AT_A_TIME = 2048  # tokens of the masked copies of the text in one batch


@dataclass(frozen=True)
class PositionWords:
    """The masked-LM predictions for one position."""

    position: int  # the token's position, from 0
    candidates: tuple[Candidate, ...]  # the most likely words first
    own_probability: float  # of the actual token
    own_rank: int  # of the actual token, those at least as likely; 1 is best


@torch.inference_mode()
def read_words(
    inspected: InspectedModel, encoded: EncodedText, top_k: int = 10
) -> list[PositionWords]:
    """Predict the word at each position except [CLS] and [SEP], with all tokens visible.

    Args:
        inspected: a model with a masked-LM head.
        encoded: the text.
        top_k: the number of candidates for each position.
    """
    tokens = inspected.model.encoder(encoded.pack().to(find_device(inspected.model)))
    positions = [position for position, word in enumerate(encoded.words) if word >= 0]
    return _predict(inspected, encoded, positions, tokens[positions], top_k)


@torch.inference_mode()
def predict_words(
    inspected: InspectedModel, encoded: EncodedText, positions: Sequence[int], top_k: int = 10
) -> list[PositionWords]:
    """Predict the word at each position while that token alone is replaced by [MASK].

    Args:
        inspected: a model with a masked-LM head.
        encoded: the text.
        positions: the positions of the tokens to mask, from 0.
        top_k: the number of candidates for each position.
    """
    ids, length, predicted = encoded.encoding.ids, len(encoded.words), []
    mask, types = [inspected.tokenizer.mask_id], encoded.encoding.token_type_ids
    with show_progress("words hidden one by one", len(positions)) as progress:
        size = max(1, TOKENS_AT_A_TIME // length)
        for start in range(0, len(positions), size):
            chosen = positions[start : start + size]
            copies = [[*ids[:position], *mask, *ids[position + 1 :]] for position in chosen]
            batch = PackedBatch.from_sequences(copies, [types] * len(chosen))
            tokens = inspected.model.encoder(batch.to(find_device(inspected.model)))
            hidden = tokens[[copy * length + position for copy, position in enumerate(chosen)]]
            predicted += _predict(inspected, encoded, chosen, hidden, top_k)
            progress.advance(len(chosen))
    return predicted


def _predict(
    inspected: InspectedModel,
    encoded: EncodedText,
    positions: Sequence[int],
    tokens: Float[Tensor, "positions hidden"],
    top_k: int,
) -> list[PositionWords]:
    """Return the most likely words for some positions, given their hidden states."""
    own = [encoded.encoding.ids[position] for position in positions]
    words = PredictedWords(find_words(inspected, tokens), tuple(own))
    return choose_words(words, positions, inspected.tokenizer.descriptions, top_k)


def choose_words(
    words: PredictedWords, positions: Sequence[int], vocabulary: Sequence[str], top_k: int
) -> list[PositionWords]:
    """Return the most likely words for some positions, given their log probabilities."""
    logarithms = words.log_probabilities
    own = logarithms[range(len(positions)), words.ids]
    ranks = (logarithms >= own[:, None]).sum(dim=-1)
    best = logarithms.exp().topk(min(top_k, logarithms.shape[1]))
    candidates = [
        tuple(Candidate(vocabulary[id_], id_, share) for id_, share in zip(*row, strict=True))
        for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    rows = zip(positions, candidates, own.exp().tolist(), ranks.tolist(), strict=True)
    return [PositionWords(*row) for row in rows]


@dataclass(frozen=True, eq=False)
class Occurrence:
    """One occurrence of a word."""

    encoded: EncodedText
    tokens: range  # positions, from 0

    @property
    def span(self) -> tuple[int, int]:
        """The character range of the word, as in `text[start:stop]`."""
        offsets = self.encoded.encoding.offsets
        return offsets[self.tokens[0]][0], offsets[self.tokens[-1]][1]


@dataclass(frozen=True, eq=False)
class WordInContexts:
    """The vectors of a word's occurrences at every layer.

    Attributes:
        word: the word as requested.
        occurrences: its occurrences, in the order of the texts.
        vectors: one for each layer and occurrence; the mean over the word's pieces. Layer 0 is the
            output of the embeddings, where occurrences differ only by position.
        different_words: the mean cosine between different tokens of different texts, at each
            layer; NaN where there are none.
    """

    word: str
    occurrences: tuple[Occurrence, ...]
    vectors: Float[Tensor, "layers occurrences hidden"]
    different_words: Float[Tensor, " layers"]

    @cached_property
    def cosines(self) -> Float[Tensor, "layers occurrences occurrences"]:
        """The cosine between the vectors of each pair of occurrences, from -1 to 1."""
        units = torch.nn.functional.normalize(self.vectors, dim=-1)
        return units @ units.mT

    @cached_property
    def self_similarity(self) -> Float[Tensor, " layers"]:
        """The mean cosine between the vectors of two different occurrences."""
        num_occurrences = len(self.occurrences)
        both_ways = self.cosines.sum(dim=(1, 2)) - self.cosines.diagonal(dim1=1, dim2=2).sum(dim=1)
        mean: Tensor = both_ways / (num_occurrences * (num_occurrences - 1))
        return mean

    @cached_property
    def planes(self) -> list[Plane]:
        """The occurrences projected to a plane at each layer, as in `project_layers`."""
        return project_layers(self.vectors)


def compare_contexts(inspected: InspectedModel, word: str, texts: Sequence[str]) -> WordInContexts:
    """Compare the vectors of a word in several texts.

    Examples:
        model = InspectedModel.load("all-MiniLM-L6-v2/")
        bank = compare_contexts(model, "bank", ["The river bank.", "A bank lends money."])
        bank.cosines[-1]

    Args:
        inspected: any model.
        word: one word or several, found where its tokens match: an uncased model finds Bank and
            bank, no model finds banks.
        texts: each must contain the word; the vectors of all their tokens are held in memory.
    """
    check_texts(texts)
    check_texts([word])
    ids = inspected.tokenizer.piece_ids([word])[0]
    if not ids or inspected.tokenizer.unk_id in ids:
        raise InputError(
            f"the word {word!r:.40} can't be made of the vocabulary's entries; name another"
        )
    occurrences: list[Occurrence] = []
    vectors, others = [], []
    for number, text in enumerate(texts, start=1):
        encoded = inspected.read(text)
        spans = find_word(encoded, ids)
        if not spans:
            raise InputError(f"the word {word!r:.40} isn't in text {number} ({text!r:.60})")
        states = torch.stack(inspected.observe(encoded).states)
        vectors += [states[:, span].mean(dim=1).float().cpu() for span in spans]
        kept = [
            token
            for token, word in enumerate(encoded.words)
            if word >= 0 and not any(token in span for span in spans)
        ]
        others.append((torch.tensor(encoded.encoding.ids)[kept], states[:, kept].float().cpu()))
        occurrences += [Occurrence(encoded, span) for span in spans]
    if len(occurrences) < 2:
        raise InputError(f"the word {word!r:.40} must be in two places or more to be compared")
    return WordInContexts(
        word, tuple(occurrences), torch.stack(vectors, dim=1), compare_different(others)
    )


def find_word(encoded: EncodedText, ids: Sequence[int]) -> list[range]:
    """Return the token positions of each occurrence of a word, by its pieces' ids, in a passage.

    The first piece begins a word.
    """
    spans = []
    for start in range(1, len(encoded.words) - len(ids)):
        stop = start + len(ids)
        ends = encoded.words[stop] != encoded.words[stop - 1]
        if ends and encoded.encoding.ids[start:stop] == list(ids):
            spans.append(range(start, stop))
    return spans


def compare_different(
    texts: Sequence[tuple[Int[Tensor, " tokens"], Float[Tensor, "layers tokens hidden"]]],
) -> Float[Tensor, " layers"]:
    """Return the mean cosine between different tokens of different texts, at each layer.

    The sum over all pairs is the squared norm of the vectors' sum, so no pair is computed alone:
    pairs within a text and pairs of equal tokens are subtracted, pairs of both kinds added back.
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
