"""Weights: initialization, loading from and saving to a checkpoint."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError
from bertkit.base.own_thread import in_own_thread
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.huggingface import write_huggingface
from bertkit.checkpoints.names import BERT, HEADS, NameTable, list_heads, their_names
from bertkit.checkpoints.transfer import (
    CLASSIFIER,
    AnyTensor,
    check_finite,
    export_tensors,
    import_tensors,
    is_own_head,
    mark_own_head,
)
from bertkit.models.bert.labels import ConfigValues

# Left to right, these read the last token of a text in bertkit, and the first in transformers.
READ_ONE_TOKEN = (["BertForSequenceClassification"], ["BertForMultipleChoice"])


def initialize(model: nn.Module, standard_deviation: float) -> None:
    """Initialize weights from the default generator: truncated normal; biases 0; norms 1.

    Source: google-research/bert, which truncates at two standard deviations.
    """
    if next(model.parameters()).is_meta:
        return  # there are no values to initialize
    limit = 2 * standard_deviation
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if name == "bias":
                nn.init.zeros_(parameter)
            elif isinstance(module, nn.LayerNorm):
                nn.init.ones_(parameter)
            else:
                nn.init.trunc_normal_(parameter, std=standard_deviation, a=-limit, b=limit)


class _WithoutValues(TorchFunctionMode):
    """Skips the random initialization of torch's own modules."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Collection[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if function in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return kwargs["tensor"]
        return function(*args, **kwargs)


@contextmanager
def without_memory() -> Iterator[None]:
    """Build modules on the "meta" device: shapes without memory, however large a config claims.

    Initialization is skipped, because torch would load its compiler for it, which takes seconds.
    """
    with torch.device("meta"), _WithoutValues():
        yield


@in_own_thread
def fill_model(
    model: nn.Module, checkpoint: Checkpoint, *, standard_deviation: float, new_heads: bool = False
) -> tuple[str, ...]:
    """Load weights into a model built with `without_memory`; return its new heads.

    Heads that the model lacks are ignored. Heads, or a pooler, that the checkpoint lacks are an
    error, or with `new_heads` initialized from the default generator with this standard deviation,
    in the order returned.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    heads = list_heads(their for name in expected for their in their_names(name))
    theirs = list_heads(checkpoint.tensors)
    missing = tuple(head for head in heads if head not in theirs)
    if missing and not new_heads:
        command = "`bertkit finetune`"
        if "next_sentence" in missing:
            command = "`bertkit pretrain --model … --objective bert`"
        elif "masked_lm" in missing:
            command = "`bertkit pretrain --model …`"
        if "next_sentence" in missing and "masked_lm" in theirs:
            command += " or, without next sentence, `bertkit pretrain --model … --objective mlm`"
        raise CheckpointError(
            f"{checkpoint.folder} has no {' and no '.join(missing)} head, which"
            f" {type(model).__name__} needs; load a model that has it, or train it with"
            f" {command}"
        )
    _check_labels(model, checkpoint, expected)
    from_file = {
        name: shape
        for name, shape in expected.items()
        if not set(missing).intersection(list_heads(their_names(name)))
    }
    tensors = import_tensors(
        checkpoint.tensors,
        from_file,
        checkpoint.folder,
        unused_parts=[head for head in HEADS if head not in heads],
    )
    model.load_state_dict(tensors, strict=False, assign=True)
    for head in missing:
        module = model.get_submodule(head)
        initialize(module.to_empty(device="cpu"), standard_deviation)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return missing


def _check_labels(
    model: nn.Module, checkpoint: Checkpoint, expected: Mapping[str, tuple[int, ...]]
) -> None:
    """Check that a trained head has as many labels as the config says."""
    for head in ("classifier", "qa_outputs"):
        name = f"{head}.weight"
        if name not in expected or name not in checkpoint.tensors:
            continue
        (wanted, _), shape = expected[name], checkpoint.tensors[name].shape
        if len(shape) == 2 and shape[0] != wanted:
            raise CheckpointError(
                f"{checkpoint.folder} has a {head} for {shape[0]:,} labels, and"
                f" {type(model).__name__} with this config has {wanted:,}; keep the"
                " checkpoint's num_labels and id2label, or load a checkpoint without this head"
            )


def save_weights(
    model: nn.Module, config: ConfigValues, folder: Path, names: NameTable = BERT
) -> dict[str, FileRecord]:
    """Write a model as a Hugging Face folder, replacing files of the same names.

    The class name is the one that other tools read.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    check_finite(tensors)
    dtype = next(iter(tensors.values())).dtype
    content = describe_config(config, type(model).__name__, dtype)
    return write_huggingface(folder, content, store_head(content, export_tensors(tensors, names)))


def store_head(config: ConfigValues, tensors: Mapping[str, AnyTensor]) -> dict[str, AnyTensor]:
    """Return the tensors to store: a head that transformers computes otherwise is marked."""
    is_own = is_own_head(config)
    reads_last = config.get("is_decoder") and config.get("architectures") in READ_ONE_TOKEN
    if CLASSIFIER not in tensors or not (is_own or reads_last):
        return dict(tensors)
    head = config.get("feature_head")
    scores_tokens = is_own and isinstance(head, dict) and head["scores"] == "token"
    return mark_own_head(tensors, scores_tokens=scores_tokens)


def describe_config(config: ConfigValues, architecture: str, dtype: torch.dtype) -> dict[str, Any]:
    """Return the content of `config.json` for weights of a dtype."""
    # `torch_dtype` is the old name of `dtype`.
    sizes = {name: value for name, value in config.items() if name != "torch_dtype"}
    dtype_name = str(dtype).removeprefix("torch.")
    return {**sizes, "architectures": [architecture], "dtype": dtype_name}
