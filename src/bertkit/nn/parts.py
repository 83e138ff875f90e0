"""The parts of an encoder and its heads in which families of models differ.

The defaults are BERT's. The modules of `nn` and the graphs of the engines read these parts and know
no family; a family's config states what differs. This file doesn't import torch.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class EncoderParts:
    """The parts of an encoder.

    Attributes:
        position_offset: rows of the position embeddings before that of position 0.
        has_positions: whether there are learned position embeddings.
        embedding_size: features of the embeddings, if they are projected to the hidden size.
        num_buckets: buckets of relative positions, each with a bias for each head that all layers
            add to their scores; 0 for none.
        rotary_bases: for each layer, the base of its rotary position embeddings; empty for none.
        windows: for each layer, the largest distance at which a token attends to another one, or
            None for any; empty if that is so in all layers.
        normalizes_first: whether layer norms come before sub-layers (pre-norm); one follows the
            last block.
        has_first_norm: whether the first attention has a layer norm, though its input, the
            embeddings, is normalized.
        is_gated: whether a feed-forward network is a gated linear unit: its inner layer, half of
            which is activated, is multiplied by the other half.
        has_biases: whether linear layers of the blocks, and all layer norms, have biases.
        has_head_biases: whether the dense layers of heads have biases.
    """

    position_offset: int = 0
    has_positions: bool = True
    embedding_size: int | None = None
    num_buckets: int = 0
    rotary_bases: tuple[float, ...] = ()
    windows: tuple[int | None, ...] = ()
    normalizes_first: bool = False
    has_first_norm: bool = True
    is_gated: bool = False
    has_biases: bool = True
    has_head_biases: bool = True

    def find_window(self, layer: int) -> int | None:
        """Return the largest distance at which tokens of a layer attend, or None for any."""
        return self.windows[layer] if self.windows else None

    def find_rotary_base(self, layer: int) -> float | None:
        """Return the base of a layer's rotary position embeddings, or None if it has none."""
        return self.rotary_bases[layer] if self.rotary_bases else None


BERT_PARTS = EncoderParts()


@dataclass(frozen=True)
class HeadParts:
    """What a head computes before its last linear layer.

    Attributes:
        activation: the activation after the head's dense layer.
        has_norm: whether a layer norm follows it.
        drops_first: whether dropout comes before the dense layer, and not only after it.
        pooling: what represents a sequence: [CLS], or the mean of its tokens.
    """

    activation: str = "tanh"
    has_norm: bool = False
    drops_first: bool = False
    pooling: Literal["cls", "mean"] = "cls"


BERT_HEAD = HeadParts()
