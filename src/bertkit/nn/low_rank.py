"""LoRA: linear layers whose weight stays as it is, and gets a trained update of low rank.

The update of a layer with the weight W is B A, of a rank far below that of W: W x + b + s B A x.
A is drawn, B is zero, so the first step begins with the model as it was. Gradients and the
optimizer's state exist for A and B only, and the product with x is never a matrix of W's shape.

Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models".
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.base.errors import SettingsError
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import FeedForward

JOINED = "query_key_value"
SCALE = 2.0  # s, or in the terms of the paper alpha / r


class LowRankLinear(nn.Linear):
    """A linear layer with a trained update of low rank.

    Attributes:
        lora_a: A, drawn uniformly; that of each joined matrix, one below the other.
        lora_b: B, zero at first; likewise.
    """

    lora_a: Float[Tensor, "updates inputs"]
    lora_b: Float[Tensor, "outputs rank"]

    def __init__(self, linear: nn.Linear, rank: int, num_joined: int = 1) -> None:
        """Take the weight and the bias of a layer, whose matrix joins several, row by row."""
        num_inputs, num_outputs = linear.in_features, linear.out_features
        super().__init__(num_inputs, num_outputs, device="meta")
        self.weight, self.bias, self.num_joined = linear.weight, linear.bias, num_joined
        drawn = linear.weight.new_empty(num_joined * rank, num_inputs)
        limit = 1.0 / math.sqrt(num_inputs)
        self.lora_a = nn.Parameter(nn.init.uniform_(drawn, -limit, limit))
        self.lora_b = nn.Parameter(linear.weight.new_zeros(num_outputs, rank))

    def forward(self, tokens: Float[Tensor, "tokens inputs"]) -> Float[Tensor, "tokens outputs"]:
        """Apply the layer and its update."""
        narrow = F.linear(tokens, self.lora_a)
        return torch.addmm(super().forward(tokens), narrow, self._joined_b().t(), alpha=SCALE)

    def merge(self) -> nn.Linear:
        """Return a plain layer that computes the same, up to rounding."""
        merged = nn.Linear(self.in_features, self.out_features, device="meta")
        update = SCALE * (self._joined_b() @ self.lora_a)
        merged.weight = nn.Parameter(self.weight.detach() + update.detach())
        merged.bias = self.bias
        return merged.train(self.training)

    def _joined_b(self) -> Float[Tensor, "outputs updates"]:
        """Return B of all joined matrices as one, with zeros between them."""
        if self.num_joined == 1:
            return self.lora_b
        joined: Tensor = torch.block_diag(*self.lora_b.chunk(self.num_joined))  # type: ignore[no-untyped-call]
        return joined


def add_low_rank(model: nn.Module, rank: int, num_joined: int = 3) -> None:
    """Give all linear layers of attention and feed-forward an update of this rank.

    Args:
        num_joined: updates of the matrix that joins those of queries, keys and values: 3, each of
            its own, or 1 for all.

    Raises:
        SettingsError: the rank isn't below that of the matrices.
    """
    for module in list(model.modules()):
        for name in _list_layers(module):
            linear = module.get_submodule(name)
            assert isinstance(linear, nn.Linear), "named so"
            number = num_joined if name == JOINED else 1
            if rank >= (limit := min(linear.in_features, linear.out_features // number)):
                raise SettingsError(
                    f"lora ({rank}) must be below {limit}, the rank of the model's matrices; 8 to"
                    " 64 are usual"
                )
            setattr(module, name, LowRankLinear(linear, rank, number))


def merge_low_rank(model: nn.Module) -> None:
    """Replace all layers with an update of low rank by plain ones that compute the same."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, LowRankLinear):
                setattr(module, name, child.merge())


def _list_layers(module: nn.Module) -> tuple[str, ...]:
    """Return the linear layers of a sub-layer."""
    if isinstance(module, SelfAttention):
        return (JOINED, "output")
    return ("up", "down") if isinstance(module, FeedForward) else ()
