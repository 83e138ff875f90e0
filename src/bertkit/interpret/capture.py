"""What the encoder's attention computes, taken from its own forward pass.

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
from bertkit.nn.attention import SelfAttention, score_keys
from bertkit.nn.packing import PackedBatch


@dataclass(frozen=True, eq=False)
class AttentionHeads:
    """The heads of one layer on one sequence.

    Attributes:
        query: what each token looks for.
        key: what each token can be found by.
        value: what each token gives to those that attend to it.
        context: what each token gathered, as the model's kernel computed it; None of a layer that
            computed it for first tokens only.
    """

    query: Float[Tensor, "heads length features"]
    key: Float[Tensor, "heads length features"]
    value: Float[Tensor, "heads length features"]
    context: Float[Tensor, "heads length features"] | None

    @cached_property
    def scores(self) -> Float[Tensor, "heads length length"]:
        """As `score_keys`: a row for each token that looks, a column for each that is seen."""
        return score_keys(self.query, self.key)

    @cached_property
    def weights(self) -> Float[Tensor, "heads length length"]:
        """The softmax of each row of scores: how much of each value is gathered."""
        return self.scores.softmax(dim=-1)


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """The attention of one layer in one pass over a packed batch.

    Attributes:
        query_key_value: of each token and head; 0 is the query, 1 the key, 2 the value.
        context: of each token and head; of the first tokens only where the layer computed no
            others.
        lengths: tokens of each sequence.
    """

    query_key_value: Float[Tensor, "tokens 3 heads features"]
    context: Float[Tensor, "rows heads features"]
    lengths: tuple[int, ...]

    def heads(self, sequence: int = 0) -> AttentionHeads:
        """All heads on one sequence of the batch, counted from 0."""
        start = sum(self.lengths[:sequence])
        tokens = slice(start, start + self.lengths[sequence])
        query, key, value = self.query_key_value[tokens].permute(1, 2, 0, 3)
        is_whole = len(self.context) == len(self.query_key_value)
        context = self.context[tokens].transpose(0, 1) if is_whole else None
        return AttentionHeads(query, key, value, context)


@contextmanager
def capture_attention(encoder: BertEncoder) -> Iterator[list[LayerAttention]]:
    """Capture what attention computes in the passes that are made meanwhile.

    Gives a list that grows by an entry a layer in each pass, the first layer first. Tensors are the
    model's own: they are on its device, and where gradients are recorded they have theirs.

    Args:
        encoder: of any model.
    """
    captured: list[LayerAttention] = []
    with ExitStack() as hooks:
        for attention in list_attention(encoder):
            for handle in _watch(attention, captured):
                hooks.callback(handle.remove)
        yield captured


def list_attention(encoder: BertEncoder) -> list[SelfAttention]:
    """The attention of each layer, the first layer first."""
    return [module for module in encoder.modules() if isinstance(module, SelfAttention)]


def _watch(attention: SelfAttention, captured: list[LayerAttention]) -> Iterator[Any]:
    """Hooks around one layer's attention."""
    seen: dict[str, Tensor] = {}

    def see_heads(_: nn.Module, __: Any, heads: Tensor) -> None:
        seen["heads"] = heads.view(len(heads), 3, attention.num_heads, -1)

    def see_context(_: nn.Module, inputs: tuple[Tensor]) -> None:
        seen["context"] = inputs[0].view(len(inputs[0]), attention.num_heads, -1)

    def note(_: nn.Module, inputs: tuple[Tensor, PackedBatch], __: Tensor) -> None:
        captured.append(LayerAttention(seen.pop("heads"), seen.pop("context"), inputs[1].lengths))

    yield attention.query_key_value.register_forward_hook(see_heads)
    yield attention.output.register_forward_pre_hook(see_context)
    yield attention.register_forward_hook(note)
