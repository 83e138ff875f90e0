"""Models as modules of PyTorch, for what needs more than an engine computes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from bertkit.checkpoints.torch_tensors import to_tensors
from bertkit.inference.engines.engine import Engine
from bertkit.inference.engines.openvino_engine import OpenVinoEngine
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.architectures import ARCHITECTURES
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.models.bert.weights import without_memory
from bertkit.models.open_model import OpenModel
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device

Model = TypeVar("Model", bound=PretrainedBert)


@dataclass(frozen=True)
class TorchModel(LoadedModel, Generic[Model]):
    """A model in evaluation mode, with its tokenizer."""

    model: Model = field(kw_only=True)

    @classmethod
    def load(
        cls,
        kind: type[Model],
        model: str | Path | OpenModel | None = None,
        device: str = "auto",
        *,
        revision: str | None = None,
    ) -> Self:
        """Load a model, by default the one that comes with bertkit, as in `Pipeline.load`.

        The checkpoint must have the heads of `kind`, and may have others.
        """
        opened = OpenModel.open(model, revision=revision, bundled="words")
        loaded = kind.from_pretrained(opened).to(choose_device(device))
        return cls(loaded.config, opened.tokenizer, opened.without_weights(), model=loaded)

    @classmethod
    def in_memory(cls, model: Model, tokenizer: Tokenizer, opened: OpenModel | None = None) -> Self:
        """Take a model in memory."""
        return cls(model.config, tokenizer, opened, model=model)


def find_network(engine: Engine) -> Any:
    """Return the model that an engine computes, in float32 and in evaluation mode.

    It shares the engine's weights.
    """
    if isinstance(engine, TorchEngine):
        return engine.model
    assert isinstance(engine, OpenVinoEngine), "there is no third engine"
    with without_memory():
        model = ARCHITECTURES[engine.architecture].kind(engine.config)
    model.load_state_dict(to_tensors(dict(engine.list_weights())), strict=False, assign=True)
    return model.eval()
