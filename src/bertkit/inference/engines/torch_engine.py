"""PyTorch's engine: a model's own modules, on its device."""

import logging
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, Literal, Protocol

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor, nn

from bertkit.base.errors import SettingsError
from bertkit.base.own_thread import in_own_thread
from bertkit.inference.engines.engine import ROWS_AT_A_TIME, Engine, check_finite, resolve_layers
from bertkit.inference.settings import EngineName, EngineSettings, Precision, PrecisionName
from bertkit.models.bert.architectures import ARCHITECTURES
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.nn.packing import PackedBatch
from bertkit.training.device import choose_device, choose_precision

logger = logging.getLogger(__name__)


class HasEncoder(Protocol):
    """Any bertkit model with an encoder."""

    config: BertConfig
    encoder: BertEncoder


# On a CPU a batch should fit in the cache; a GPU needs work for all its cores.
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}


class TorchEngine(Engine):
    """Runs a model's own encoder and heads, on the model's device; in bf16, a copy of the encoder.

    The model is set to evaluation mode, and must be in it whenever the engine runs: in training
    mode, dropout applies here too. `layers` are as in `resolve_layers`.
    """

    name = "torch"

    def __init__(
        self,
        model: HasEncoder,
        layers: Iterable[int] = (-1,),
        precision: Precision = "fp32",
    ) -> None:
        self.model: Any = model  # the heads that a model has depend on its class
        self.config, self.precision = model.config, precision
        self.layers = resolve_layers(layers, model.config.num_hidden_layers)
        self.has_pooler = getattr(model, "pooler", None) is not None
        encoder = model.encoder.eval()
        self.encoder = copy_in_bf16(encoder) if precision == "bf16" else encoder
        self.device = find_device(model)
        self.tokens_per_batch = TOKENS_PER_BATCH[self.device.type]

    @torch.inference_mode()
    def __call__(self, ids: PackedIds) -> list[Float32[np.ndarray, "tokens hidden"]]:
        """As in `Engine`."""
        return [as_array(states) for states in self._compute(self.place(ids))]

    @torch.inference_mode()
    def pool(
        self, tokens: Float32[np.ndarray, "tokens hidden"], ids: PackedIds
    ) -> Float32[np.ndarray, "sequences hidden"]:
        """As in `Engine`."""
        weight = self.model.encoder.embeddings.word.weight
        states = torch.from_numpy(tokens).to(self.device, weight.dtype)
        return as_array(self.model.pooler(states, self.place(ids)))

    @torch.inference_mode()
    def logits(self, ids: PackedIds) -> Float32[np.ndarray, "rows ..."]:
        """As in `Engine`; in float32, a head that reads C alone has less to compute."""
        batch = self.place(ids)
        if self.precision == "fp32":
            return as_array(self.model.scores(batch))
        return as_array(self.model.head_scores(self._read(batch), batch))

    @torch.inference_mode()
    def score_words(
        self, ids: PackedIds, places: Int64[np.ndarray, " chosen"]
    ) -> Iterator[Float32[np.ndarray, "rows vocabulary"]]:
        """As in `Engine`."""
        states = self._read(self.place(ids))[torch.from_numpy(places).to(self.device)]
        for rows in torch.split(states, ROWS_AT_A_TIME):
            yield as_array(self.model.score_words(rows))

    @torch.inference_mode()
    def score_pairs(self, ids: PackedIds) -> Float32[np.ndarray, "sequences 2"]:
        """As in `Engine`."""
        batch = self.place(ids)
        return as_array(self.model.score_pairs(self._read(batch), batch))

    def place(self, ids: PackedIds) -> PackedBatch:
        """Return the batch on the model's device."""
        return PackedBatch.of(ids).to(self.device)

    def _compute(self, batch: PackedBatch) -> list[Float[Tensor, "tokens hidden"]]:
        states: dict[int, Tensor] = {}
        last = max(self.layers)
        for layer, tokens in enumerate(self.encoder.hidden_states(batch)):
            if layer in self.layers:
                states[layer] = tokens
            if layer == last:
                break
        return [states[layer] for layer in self.layers]

    def _read(self, batch: PackedBatch) -> Float[Tensor, "tokens features"]:
        """Return the states that a head reads, those of all `layers`, in the head's precision."""
        dtype = self.model.encoder.embeddings.word.weight.dtype
        return torch.cat(self._compute(batch), dim=1).to(dtype)


def open_torch(
    opened: OpenModel,
    device_name: str,
    precision_name: Literal["auto", "fp32", "bf16"],
    architecture: str,
    layers: Iterable[int],
) -> TorchEngine:
    """Load a model into PyTorch's engine; the arguments are those of `open_engine`."""
    device = choose_device(device_name)
    precision = choose_precision(precision_name, device, "inference")
    logger.info("computing on %s in %s, engine torch", device, precision)
    model: Any = ARCHITECTURES[architecture].kind.from_pretrained(opened).to(device)
    return TorchEngine(model, layers, precision)


@torch.inference_mode()
def compute_scores(
    model: FineTunedBert, ids: PackedIds, device: torch.device
) -> Float32[np.ndarray, "rows ..."]:
    """Compute a fine-tuned model's logits, or its vectors, as it is on its device."""
    return as_array(model.scores(PackedBatch.of(ids).to(device)))


def as_array(values: Float[Tensor, "..."]) -> Float32[np.ndarray, "..."]:
    """Return a tensor's values in NumPy, as float32."""
    array: Float32[np.ndarray, ...] = values.detach().float().cpu().numpy()
    return array


def check_finite_tensor(values: Float[Tensor, "..."], what: str) -> None:
    """Raise NonFiniteError for values that aren't finite, as `check_finite`."""
    check_finite(as_array(values), what)


@in_own_thread
def copy_in_bf16(encoder: BertEncoder) -> BertEncoder:
    """Return a copy of an encoder whose weights are bf16."""
    return deepcopy(encoder).bfloat16()


def cast_whole(model: nn.Module, precision: PrecisionName, device: torch.device) -> None:
    """Cast a model that no engine runs, because it writes texts or is viewed, to a precision.

    auto is fp32, since what bf16 gives was measured for encoders only; int8 is refused.
    """
    if precision == "int8":
        raise SettingsError(
            "int8 is for encoders, and this takes the whole model; use fp32 or bf16"
        )
    kind = "fp32" if precision == "auto" else choose_precision(precision, device, "inference")
    logger.info("computing on %s in %s", device, kind)
    if kind == "bf16":
        model.bfloat16()


def find_device(model: HasEncoder) -> torch.device:
    """Return the device of a model."""
    return model.encoder.embeddings.word.weight.device


def choose_engine(
    name: EngineName,
    model: HasEncoder,
    layers: Iterable[int] = (-1,),
    precision: PrecisionName = "auto",
) -> Engine:
    """Build an engine for a model in memory; the choice is that of `open_engine`."""
    from bertkit.inference.engines import choice
    from bertkit.inference.engines.openvino_engine import OpenVinoEngine

    loading = EngineSettings(device=str(find_device(model)), engine=name, precision=precision)
    is_cast = model.encoder.embeddings.word.weight.dtype != torch.float32
    if is_cast or choice.find_torch_reason(loading, model.config):
        if precision == "int8":
            raise SettingsError("int8 is for bidirectional models on a CPU, in the engine openvino")
        if is_cast and precision == "auto":
            precision = "fp32"
        return TorchEngine(
            model, layers, choose_precision(precision, find_device(model), "inference")
        )
    module: Any = model
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    kind = choice.choose_precision(precision)
    return OpenVinoEngine(model.config, weights, type(model).__name__, layers, kind)
