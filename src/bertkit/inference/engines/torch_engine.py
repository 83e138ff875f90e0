"""The PyTorch engine, which is always available."""

from collections.abc import Iterable
from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.own_thread import in_own_thread
from bertkit.inference.engines.engine import HasEncoder, resolve_layers
from bertkit.inference.engines.names import Precision
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.packing import PackedBatch

# On a CPU a batch should fit in the cache; a GPU needs work for all its cores.
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}


class TorchEngine:
    """Runs a model's own encoder, on the model's device.

    Args:
        model: any model; only its encoder is used. It is set to evaluation mode, and must be in it
            whenever the engine runs: in training mode, dropout applies here too.
        layers: layers whose hidden states are returned, as in `resolve_layers`.
        precision: fp32, or bf16 on a copy of the encoder: the model's heads stay as they are.
    """

    name = "torch"

    def __init__(
        self,
        model: HasEncoder,
        layers: Iterable[int] = (-1,),
        precision: Precision = "fp32",
    ) -> None:
        self.precision = precision
        self.layers = resolve_layers(layers, model.config.num_hidden_layers)
        self._encoder = model.encoder.eval()
        if precision == "bf16":
            self._encoder = copy_in_bf16(self._encoder)
        self._device = self._encoder.embeddings.word.weight.device
        self.tokens_per_batch = TOKENS_PER_BATCH[self._device.type]

    @torch.inference_mode()
    def __call__(self, batch: PackedBatch) -> list[Float[Tensor, "tokens hidden"]]:
        """Compute hidden states in float32, on the model's device, one tensor per layer."""
        states: dict[int, Tensor] = {}
        last = max(self.layers)
        for layer, tokens in enumerate(self._encoder.hidden_states(batch.to(self._device))):
            if layer in self.layers:
                states[layer] = tokens.float()
            if layer == last:
                break
        return [states[layer] for layer in self.layers]


@in_own_thread
def copy_in_bf16(encoder: BertEncoder) -> BertEncoder:
    """Return a copy of an encoder whose weights are bf16."""
    return deepcopy(encoder).bfloat16()
