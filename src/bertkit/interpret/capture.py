"""Capture the tensors of attention during the model's own forward pass.

While `capture_attention` is active, hooks keep the query, key and value that the model projects,
and the context that its attention kernel computes. Nothing is computed twice, and the model's
output stays bit for bit the same. The hooks are removed when the context manager exits.

Fast kernels don't return scores or attention weights; `AttentionHeads` computes them from the
captured query and key by the equation that `nn/attention.py` trains with.

Source: Vaswani et al. 2017, section 3.2.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from bertkit.nn.attention import SelfAttention, score_keys
from bertkit.nn.masks import BIDIRECTIONAL, AttentionMask

AnyAttention = TypeVar("AnyAttention", bound=nn.Module)


@dataclass(frozen=True, eq=False)
class AttentionHeads:
    """The heads of one layer on one sequence; the keys may be of another sequence.

    The context is each token's weighted sum of values, as the model's kernel computed it; None
    where the layer computed it only for the tokens that represent their sequences.
    """

    query: Float[Tensor, "heads length features"]
    key: Float[Tensor, "heads attended features"]
    value: Float[Tensor, "heads attended features"]
    context: Float[Tensor, "heads length features"] | None
    mask: AttentionMask = BIDIRECTIONAL
    bias: Float[Tensor, "heads length attended"] | None = None

    @property
    def scores(self) -> Float[Tensor, "heads length attended"]:
        """The scores of `score_keys` and the bias: a row for each query, a column for each key.

        They are as large as the weights, so they aren't cached. Scores of keys that the mask hides
        are minus infinity.
        """
        scores = score_keys(self.query, self.key)
        if self.bias is not None:
            scores = scores + self.bias
        allowed = self.mask.find_allowed(*scores.shape[-2:])
        return scores.masked_fill(~allowed.to(scores.device), -math.inf)

    @cached_property
    def weights(self) -> Float[Tensor, "heads length attended"]:
        """The attention weights: the softmax of each row of scores."""
        return self.scores.softmax(dim=-1)


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """The attention of one layer in one pass over a packed batch.

    The context is of each token, or only of those that represent their sequences.
    """

    query: Float[Tensor, "tokens heads features"]
    key: Float[Tensor, "attended heads features"]
    value: Float[Tensor, "attended heads features"]
    context: Float[Tensor, "rows heads features"]
    lengths: tuple[int, ...]  # tokens of each sequence
    attended_lengths: tuple[int, ...]  # of the keys; equal to `lengths` in self-attention
    mask: AttentionMask = BIDIRECTIONAL
    bias: Float[Tensor, "heads longest longest"] | None = None  # added to each sequence's scores

    def heads(self, sequence: int = 0) -> AttentionHeads:
        """Return all heads on one sequence of the batch, numbered from 0."""
        tokens = _find_tokens(self.lengths, sequence)
        attended = _find_tokens(self.attended_lengths, sequence)
        length, bias = self.lengths[sequence], self.bias
        is_whole = len(self.context) == len(self.query)
        return AttentionHeads(
            widen(self.query[tokens].transpose(0, 1)),
            widen(self.key[attended].transpose(0, 1)),
            widen(self.value[attended].transpose(0, 1)),
            widen(self.context[tokens].transpose(0, 1)) if is_whole else None,
            self.mask,
            None if bias is None else widen(bias[:, :length, :length]),
        )


def widen(values: Tensor) -> Tensor:
    """Return values of a model in bf16 as float32, for what is computed from them; others as is."""
    return values.float() if values.dtype == torch.bfloat16 else values


def _find_tokens(lengths: tuple[int, ...], sequence: int) -> slice:
    start = sum(lengths[:sequence])
    return slice(start, start + lengths[sequence])


def capture_attention(stack: nn.Module) -> AbstractContextManager[list[LayerAttention]]:
    """Capture self-attention in every forward pass inside the `with` block.

    Yields a list to which each pass appends one entry per layer, first layer first. The tensors are
    the model's own: they are on its device and part of the autograd graph, if there is one.

    Args:
        stack: an encoder, or another stack of layers.
    """
    return capture_with(stack, SelfAttention, _watch)


@contextmanager
def capture_with(
    stack: nn.Module,
    kind: type[AnyAttention],
    watch: Callable[[AnyAttention, list[LayerAttention]], Iterator[RemovableHandle]],
) -> Iterator[list[LayerAttention]]:
    """Capture what the hooks that `watch` registers around each module of a kind see."""
    captured: list[LayerAttention] = []
    with ExitStack() as hooks:
        for module in stack.modules():
            if isinstance(module, kind):
                for handle in watch(module, captured):
                    hooks.callback(handle.remove)
        yield captured


def _watch(attention: SelfAttention, captured: list[LayerAttention]) -> Iterator[RemovableHandle]:
    """Register hooks around one layer's self-attention."""
    seen, num_heads = dict[str, Tensor](), attention.num_heads

    def note(_: nn.Module, inputs: tuple[Any, ...], __: Tensor) -> None:
        query, key, value = seen.pop("heads").unbind(dim=1)
        batch, *options = inputs[1:]
        bias = options[1] if len(options) > 1 else None
        lengths, context = batch.lengths, seen.pop("context")
        captured.append(
            LayerAttention(query, key, value, context, lengths, lengths, attention.mask, bias)
        )

    projected = attention.rotary or attention.query_key_value  # what the scores are computed from
    yield projected.register_forward_hook(keep_heads(seen, "heads", 3, num_heads))
    yield attention.output.register_forward_pre_hook(keep_heads(seen, "context", num_heads))
    yield attention.register_forward_hook(note)


def keep_heads(seen: dict[str, Tensor], name: str, *sizes: int) -> Callable[..., None]:
    """Return a hook that keeps what a module returns, or before it runs what it gets, by heads."""

    def keep(_: nn.Module, inputs: tuple[Tensor], output: Tensor | None = None) -> None:
        values = inputs[0] if output is None else output
        seen[name] = values.view(len(values), *sizes, -1)

    return keep
