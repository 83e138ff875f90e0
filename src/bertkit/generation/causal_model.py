"""A left-to-right model with its tokenizer."""

from pathlib import Path

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.inference.engines.choice import cast_whole, find_device
from bertkit.inference.engines.names import PrecisionName
from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.causal import BertLMHeadModel

CausalModel = LoadedModel[BertLMHeadModel]


def load_causal(
    path: str | Path,
    device: str = "auto",
    *,
    revision: str | None = None,
    precision: PrecisionName = "auto",
) -> CausalModel:
    """Load a left-to-right model.

    Arguments and errors are those of `LoadedModel.load` and `cast_whole`.
    """
    checkpoint = open_checkpoint(resolve_model(path, revision=revision))
    is_bert = checkpoint.config.get("model_type", "bert") == "bert"
    if is_bert and checkpoint.config.get("is_decoder") is not True:
        raise CheckpointError(
            f"{checkpoint.folder}: the model is bidirectional, so it can't predict the next word;"
            f" `bertkit pretrain --objective causal --from` it trains one that can"
        )
    loaded = LoadedModel.from_checkpoint(BertLMHeadModel, checkpoint, device)
    cast_whole(loaded.model, precision, find_device(loaded.model))
    return loaded
