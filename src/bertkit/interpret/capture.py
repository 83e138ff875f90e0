"""What attention computes, taken from the model's own forward pass.

While `capture_attention` is active, hooks keep query, key and value as the model's own matrix gives
them, and the context that its own kernel makes of them. Nothing is computed twice, what the model
returns doesn't change by a bit, and without the context there are no hooks.

Scores and attention weights aren't kept by any fast kernel; `AttentionHeads` finds them from the
captured query and key by the equation that `nn/attention.py` trains with.

Source: Vaswani et al. 2017, section 3.2.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from bertkit.models.bert.encoder import BertEncoder
from bertkit.models.seq2seq.halves import Decoder
from bertkit.nn.attention import SelfAttention, bar_later, score_keys
from bertkit.nn.cross_attention import CrossAttention, Memory
from bertkit.nn.packing import PackedBatch


@dataclass(frozen=True, eq=False)
class AttentionHeads:
    """The heads of one layer on one sequence.

    Attributes:
        query: what each token looks for.
        key: what each token that is seen can be found by; in cross-attention those are of another
            sequence than the tokens that look.
        value: what each token that is seen gives to those that attend to it.
        context: what each token gathered, as the model's kernel computed it; None of a layer that
            computed it for the tokens alone that stand for their sequences.
        is_causal: left to right: a token sees itself and those before it.
    """

    query: Float[Tensor, "heads length features"]
    key: Float[Tensor, "heads others features"]
    value: Float[Tensor, "heads others features"]
    context: Float[Tensor, "heads length features"] | None
    is_causal: bool = False

    @property
    def scores(self) -> Float[Tensor, "heads length others"]:
        """As `score_keys`: a row for each token that looks, a column for each that is seen.

        They are as large as the weights, and not kept beside them.
        Left to right, those of later tokens are minus infinity.
        """
        scores = score_keys(self.query, self.key)
        return scores + bar_later(scores) if self.is_causal else scores

    @cached_property
    def weights(self) -> Float[Tensor, "heads length others"]:
        """The softmax of each row of scores: how much of each value is gathered."""
        return self.scores.softmax(dim=-1)


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """The attention of one layer in one pass over a packed batch.

    Attributes:
        query: of each token and head.
        key: of each token that is seen, and head.
        value: of the same.
        context: of each token and head; only of the tokens that stand for their sequences where
            the layer computed no others.
        lengths: tokens of each sequence.
        other_lengths: tokens of each sequence that is seen; the same in self-attention.
        is_causal: left to right.
    """

    query: Float[Tensor, "tokens heads features"]
    key: Float[Tensor, "others heads features"]
    value: Float[Tensor, "others heads features"]
    context: Float[Tensor, "rows heads features"]
    lengths: tuple[int, ...]
    other_lengths: tuple[int, ...]
    is_causal: bool = False

    def heads(self, sequence: int = 0) -> AttentionHeads:
        """All heads on one sequence of the batch, counted from 0."""
        tokens = _find_tokens(self.lengths, sequence)
        others = _find_tokens(self.other_lengths, sequence)
        is_whole = len(self.context) == len(self.query)
        return AttentionHeads(
            self.query[tokens].transpose(0, 1),
            self.key[others].transpose(0, 1),
            self.value[others].transpose(0, 1),
            self.context[tokens].transpose(0, 1) if is_whole else None,
            self.is_causal,
        )


def _find_tokens(lengths: tuple[int, ...], sequence: int) -> slice:
    start = sum(lengths[:sequence])
    return slice(start, start + lengths[sequence])


@contextmanager
def capture_attention(half: nn.Module) -> Iterator[list[LayerAttention]]:
    """Capture what self-attention computes in the passes over packed batches made meanwhile.

    Gives a list that grows by an entry a layer in each pass, the first layer first. Tensors are the
    model's own: they are on its device, and where gradients are recorded they have theirs.

    Args:
        half: an encoder or a decoder.
    """
    captured: list[LayerAttention] = []
    with ExitStack() as hooks:
        for attention in list_attention(half):
            for handle in _watch(attention, captured):
                hooks.callback(handle.remove)
        yield captured


@contextmanager
def capture_cross_attention(decoder: nn.Module) -> Iterator[list[LayerAttention]]:
    """Capture what the tokens that are written see of those that are read.

    As `capture_attention`, of passes over a `Memory`.

    Args:
        decoder: of an encoder-decoder.
    """
    captured: list[LayerAttention] = []
    with ExitStack() as hooks:
        for module in decoder.modules():
            if isinstance(module, CrossAttention):
                for handle in _watch_across(module, captured):
                    hooks.callback(handle.remove)
        yield captured


@contextmanager
def capture_states(
    half: BertEncoder | Decoder,
) -> Iterator[list[Float[Tensor, "tokens hidden"]]]:
    """Capture what the embeddings give, then what each layer gives, in a pass made meanwhile.

    Where the last sum is normalized, that is what the last layer gives, as in `hidden_states`.

    Args:
        half: of any model.
    """
    captured: list[Tensor] = []

    def see(_: nn.Module, __: Any, tokens: Tensor) -> None:
        captured.append(tokens)

    with ExitStack() as hooks:
        *lower, last = half.layers
        for module in (half.embeddings, *lower, getattr(half, "final_norm", last)):
            hooks.callback(module.register_forward_hook(see).remove)
        yield captured


def list_attention(half: nn.Module) -> list[SelfAttention]:
    """The self-attention of each layer, the first layer first."""
    return [module for module in half.modules() if isinstance(module, SelfAttention)]


def _watch(attention: SelfAttention, captured: list[LayerAttention]) -> Iterator[Any]:
    """Hooks around one layer's self-attention."""
    seen: dict[str, Tensor] = {}

    def see_heads(_: nn.Module, __: Any, heads: Tensor) -> None:
        seen["heads"] = heads.view(len(heads), 3, attention.num_heads, -1)

    def see_context(_: nn.Module, inputs: tuple[Tensor]) -> None:
        seen["context"] = inputs[0].view(len(inputs[0]), attention.num_heads, -1)

    def note(_: nn.Module, inputs: tuple[Tensor, PackedBatch], __: Tensor) -> None:
        query, key, value = seen.pop("heads").unbind(dim=1)
        lengths = inputs[1].lengths
        captured.append(
            LayerAttention(
                query, key, value, seen.pop("context"), lengths, lengths, attention.is_causal
            )
        )

    yield attention.query_key_value.register_forward_hook(see_heads)
    yield attention.output.register_forward_pre_hook(see_context)
    yield attention.register_forward_hook(note)


def _watch_across(attention: CrossAttention, captured: list[LayerAttention]) -> Iterator[Any]:
    """Hooks around one layer's cross-attention."""
    seen: dict[str, Tensor] = {}

    def see_query(_: nn.Module, __: Any, query: Tensor) -> None:
        seen["query"] = query.view(len(query), attention.num_heads, -1)

    def see_others(_: nn.Module, __: Any, heads: Tensor) -> None:
        seen["others"] = heads.view(len(heads), 2, attention.num_heads, -1)

    def see_context(_: nn.Module, inputs: tuple[Tensor]) -> None:
        seen["context"] = inputs[0].view(len(inputs[0]), attention.num_heads, -1)

    def note(_: nn.Module, inputs: tuple[Tensor, Memory], __: Tensor) -> None:
        key, value = seen.pop("others").unbind(dim=1)
        memory = inputs[1]
        lengths, other_lengths = memory.readers.lengths, memory.batch.lengths
        query, context = seen.pop("query"), seen.pop("context")
        captured.append(LayerAttention(query, key, value, context, lengths, other_lengths))

    yield attention.query.register_forward_hook(see_query)
    yield attention.key_value.register_forward_hook(see_others)
    yield attention.output.register_forward_pre_hook(see_context)
    yield attention.register_forward_hook(note)
