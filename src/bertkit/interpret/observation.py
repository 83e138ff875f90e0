"""What one forward pass over a text shows: hidden states, attention and predicted words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertkit.base.errors import InputError
from bertkit.inference.engines.torch_engine import check_finite_tensor
from bertkit.interpret.ablation import HeadName
from bertkit.interpret.capture import AttentionHeads
from bertkit.interpret.patterns import HeadPattern, find_patterns
from bertkit.models.bert.config import BertConfig
from bertkit.nn.masks import AttentionMask
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.names import OF_BERT, SpecialTokens
from bertkit.tokenization.tokenizer import Tokenizer

MAX_LISTED_TOKENS = 40


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A text, or a pair of texts, tokenized for the model."""

    text: str
    pair: str | None
    encoding: Encoding  # offsets are into the token's own text
    words: tuple[int, ...]  # word index of each token, from 0; −1 for [CLS] and [SEP]
    num_first: int | None = None  # tokens before the second text, special ones included
    special: SpecialTokens = OF_BERT

    @property
    def tokens(self) -> list[str]:
        """The tokens, including special tokens."""
        return list(self.encoding.tokens)

    @property
    def sides(self) -> list[int]:
        """Of each token, 0 if it is of the first text, 1 of the second."""
        length = len(self.words)
        num_first = length if self.num_first is None else self.num_first
        return [0] * num_first + [1] * (length - num_first)

    def pack(self) -> PackedBatch:
        """Return a new batch of this text; autograd can't use tensors of inference mode."""
        return PackedBatch.from_sequences([self.encoding.ids], [self.encoding.token_type_ids])

    def find(self, token: str) -> int:
        """Return the position, from 0, of a token given by its text or its number from 1."""
        return find_token(self.tokens, token)


@dataclass(frozen=True, eq=False)
class PredictedWords:
    """A model's predictions at some positions."""

    log_probabilities: Float[Tensor, "positions words"]
    ids: tuple[int, ...]  # the token ids that are really there


@dataclass(frozen=True)
class AttentionPart:
    """One of a model's attentions, as pages name and explain it.

    Attributes:
        name: as in the settings; empty for a model's only attention.
        title: of its choice on a page.
        about: a sentence about it.
        legends: legends of views, by name, where those of the views don't fit.
        sides: the names of the texts of columns and rows, where there are two texts.
    """

    name: str = ""
    title: str = ""
    about: str = ""
    legends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sides: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Observation:
    """The hidden states and attention of one forward pass over one text.

    Attributes:
        encoded: the text of the queries, the rows of attention.
        states: hidden states of the embeddings, then of each layer.
        config: of the encoder, or the other stack of layers, that computed them.
        attended: the text of the keys, the columns, if it is another one.
        predicted: the words that the tokens predict to follow, all but the last for a text of its
            own; None for models that predict none.
        without: the heads that were switched off.
        part: which of the model's attentions this is.
    """

    encoded: EncodedText
    states: list[Float[Tensor, "length hidden"]]
    layers: list[AttentionHeads]
    config: BertConfig
    attended: EncodedText | None = None
    predicted: PredictedWords | None = None
    without: tuple[HeadName, ...] = ()
    part: AttentionPart = AttentionPart()

    @property
    def columns(self) -> EncodedText:
        """The text of the keys."""
        return self.attended or self.encoded

    @cached_property
    def layers_by_mask(self) -> dict[AttentionMask, list[int]]:
        """The layers, from 1, by which tokens their tokens may attend to."""
        found: dict[AttentionMask, list[int]] = {}
        for number, heads in enumerate(self.layers, start=1):
            found.setdefault(heads.mask, []).append(number)
        return found

    @property
    def note(self) -> str:
        """What layers leave out, for explanations; empty if each token may attend to all."""
        if len(self.layers_by_mask) == 1:
            return self.layers[0].mask.note
        return " ".join(
            f"Layers {', '.join(map(str, numbers))}: {mask.note}"
            for mask, numbers in self.layers_by_mask.items()
            if mask.note
        )

    @cached_property
    def allowed(self) -> Bool[Tensor, "length attended"]:
        """For each token, which tokens it may attend to, in one layer at least."""
        return torch.stack([*map(self._find_allowed, self.layers_by_mask)]).any(dim=0)

    def _find_allowed(self, mask: AttentionMask) -> Bool[Tensor, "length attended"]:
        return mask.find_allowed(len(self.encoded.tokens), len(self.columns.tokens))

    def find_patterns(self, layer: int) -> list[HeadPattern]:
        """Return the attention pattern of each head of a layer, from 1."""
        attended = None if self.attended is None else self.attended.tokens
        heads, encoded = self.layers[layer - 1], self.encoded
        allowed = self._find_allowed(heads.mask)
        ends = encoded.special.cls, encoded.special.sep
        return find_patterns(heads.weights, encoded.tokens, attended, allowed, ends)


def find_token(tokens: Sequence[str], token: str) -> int:
    """Return the position of a token among these, given by its text or its number from 1."""
    if token in tokens:
        return tokens.index(token)
    if token.isdecimal() and len(token) < 8 and 1 <= int(token) <= len(tokens):
        return int(token) - 1
    more = " …" if len(tokens) > MAX_LISTED_TOKENS else ""
    raise InputError(
        f"there is no token {token!r:.40}; the tokens are"
        f" {' '.join(tokens[:MAX_LISTED_TOKENS])}{more}"
    )


def find_log_probabilities(
    name: str, scores: Float[Tensor, "positions entries"], tokenizer: Tokenizer
) -> Float[Tensor, "positions words"]:
    """Return the log probabilities of the vocabulary's entries, in float32.

    There may be more rows of logits than vocabulary entries.
    """
    check_finite_tensor(scores, f"the scores of the head of {name}")
    logarithms: Tensor = scores.float().log_softmax(dim=-1)[:, : tokenizer.vocab_size]
    return logarithms


def number_words(encoding: Encoding, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the word index of each token, from 0; −1 for [CLS] and [SEP] around the texts."""
    words, number = list[int](), -1
    for index, token_id in enumerate(encoding.ids):
        if token_id in tokenizer.frame_ids and encoding.offsets[index] == (0, 0):
            words.append(-1)
            continue
        begins_text = not words or words[-1] < 0
        number += begins_text or not tokenizer.is_continuation[token_id]
        words.append(number)
    return tuple(words)
