"""PEFT folders: a LoRA adapter, whose updates are added to its base model's tensors when read.

`adapter_config.json` names the base model, and `adapter_model.safetensors` has two factors of each
update, and whole tensors in place of the base model's, such as a head. With a `config.json`, the
folder describes the adapted model; without one, it has the base model's config.

Source: https://huggingface.co/docs/peft, "PEFT checkpoint format".
"""

import hashlib
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from bertkit.base.addresses import is_remote
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, MissingFileError, UnsafeFileError
from bertkit.base.files import make_folder
from bertkit.base.json_files import write_json
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import validate
from bertkit.checkpoints.checkpoint import Checkpoint, LazyTensor
from bertkit.checkpoints.elements import Array, ElementType
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.file_names import (
    ADAPTED_FILE,
    ADAPTER_CONFIG_FILE,
    ADAPTER_PYTORCH_FILE,
    ADAPTER_SAFETENSORS_FILE,
    CONFIG_FILE,
)
from bertkit.checkpoints.hub import is_on_disk, resolve_model
from bertkit.checkpoints.huggingface import open_huggingface, open_pytorch, read_config
from bertkit.checkpoints.names import HEADS, LAYER, EncoderNames, NameTable, show
from bertkit.checkpoints.safetensors_file import open_safetensors, write_safetensors
from bertkit.checkpoints.transfer import CLASSIFIER, is_own_head

BASE_KEY = "base_model_sha256"  # in `adapted_config.json`, beside the keys of a config
PREFIX = "base_model.model."  # of all names of tensors: PEFT wraps the model
MARK = ".lora_"  # in the names of tensors: before it the layer, behind it which factor
KINDS = ("A.weight", "B.weight")
FACTORS = dict(zip(("lora_a", "lora_b"), KINDS, strict=True))  # by our name of a parameter
ENCODING = "FEATURE_EXTRACTION"
# The classes of models, by PEFT's name of a task.
TASK_TYPES = {
    "SEQ_CLS": "BertForSequenceClassification",
    "TOKEN_CLS": "BertForTokenClassification",
    "QUESTION_ANS": "BertForQuestionAnswering",
    ENCODING: "BertModel",
}
LAYER_OF_BLOCK = re.compile(r"\.\d+\.(.+)\.lora_")  # what of its name PEFT finds a layer by
# Kinds of LoRA that compute something else, or change the base model's weights.
OTHERS = (
    *("use_dora", "use_qalora", "use_bdlora", "lora_bias", "fan_in_fan_out", "target_parameters"),
    *("trainable_token_indices", "layer_replication", "alora_invocation_tokens", "arrow_config"),
)
PLAIN_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")


class AdapterConfig(BaseModel):
    """The part of `adapter_config.json` that matters to the result."""

    model_config = ConfigDict(frozen=True, extra="allow")

    peft_type: Literal["LORA"]
    base_model_name_or_path: str = Field(min_length=1, max_length=4096)
    revision: str | None = None
    task_type: str | None = None
    r: int = Field(ge=1, le=1 << 16)
    lora_alpha: float = Field(allow_inf_nan=False)
    use_rslora: bool = False
    alpha_pattern: dict[str, float] | None = None  # by the end of a layer's name
    bias: Literal["none"] = "none"
    init_lora_weights: bool | str | None = True

    @model_validator(mode="after")
    def _is_plain(self) -> "AdapterConfig":
        found = [name for name in OTHERS if (self.model_extra or {}).get(name)]
        if self.init_lora_weights not in PLAIN_STARTS:
            found.append("init_lora_weights")
        if odd := [name for name in self.alpha_pattern or () if not re.fullmatch(r"[\w.]+", name)]:
            found.append(f"the pattern {odd[0]!r:.80} in alpha_pattern")
        if found:
            raise ValueError(f"{found[0]} isn't supported; expected a plain LoRA")
        return self

    def scale(self, layer: str, rank: int) -> float:
        """Return the factor of a layer's update of this rank."""
        patterns = (self.alpha_pattern or {}).items()
        found = [alpha for end, alpha in patterns if f".{layer}".endswith(f".{end}")]
        return (found or [self.lora_alpha])[0] / (rank**0.5 if self.use_rslora else rank)


@dataclass(frozen=True)
class AdapterOrigin:
    """The model that another one adapts, as an attribute of that one.

    Attributes:
        base: its name for PEFT: its id on the Hub, or its folder.
        revision: that of a model of the Hub.
        sha256: what `identify_base` returns.
    """

    base: str
    revision: str | None
    sha256: str


def identify_base(base: Checkpoint) -> str:
    """Return the SHA-256 of one weight, in any format and file; that of all would take seconds."""
    [pattern] = find_family(base.config).names.names[f"{LAYER}.attention.output.weight"]
    names = sorted(name for name in base.tensors if name.endswith(pattern.partition("}")[2]))
    weight = base.tensors[names[-1]].read_float32().tobytes() if names else b""
    return hashlib.sha256(weight).hexdigest()


def name_factors(names: EncoderNames, architecture: str) -> NameTable:
    """Return the foreign names of an adapter's tensors, without the prefix, for a class."""
    table = names.table(architecture)

    def their_names(name: str) -> tuple[str, ...]:
        layer, _, kind = name.rpartition(".")
        if kind not in FACTORS:
            return table.their_names(name)
        layers = (their.removesuffix("weight") for their in table.their_names(f"{layer}.weight"))
        return tuple(f"{their}lora_{FACTORS[kind]}" for their in layers)

    return NameTable(their_names, names.find_part, {}, ())


def open_folder(folder: Path) -> Checkpoint:
    """Open an adapter together with its base model, or a folder that has all weights."""
    is_adapter = has_member(folder, ADAPTER_CONFIG_FILE)
    return open_adapter(folder) if is_adapter else open_huggingface(folder)


def open_adapter(folder: Path) -> Checkpoint:
    """Open an adapter together with its base model, as one model."""
    path = folder / ADAPTER_CONFIG_FILE
    adapter = validate(AdapterConfig, read_config(folder, path.name), str(path), CheckpointError)
    base = _open_base(folder, adapter)
    names = find_family(base.config).names
    found, file = open_adapter_tensors(folder, names)
    tensors, own = _apply(base, adapter, found, folder), [path, file]
    config = describe_adapted(base.config, adapter, found)
    if has_member(folder, ADAPTED_FILE):  # it is bertkit's, and has all heads
        own.append(folder / ADAPTED_FILE)
        config = read_config(folder, ADAPTED_FILE)
        tensors = {
            name: tensor
            for name, tensor in tensors.items()
            if name in found or names.find_part(name) not in HEADS
        }
        if config.pop(BASE_KEY, None) != identify_base(base):
            raise CheckpointError(
                f"{folder} was trained on another model than {base.folder} is now, of the same"
                " sizes; set base_model_name_or_path to that one"
            )
    return Checkpoint("peft", folder, config, tensors, (*own, *base.files), base.folder)


def open_adapter_tensors(folder: Path, names: EncoderNames) -> tuple[dict[str, LazyTensor], Path]:
    """Return an adapter's tensors by current Hugging Face name, and their file."""
    for name, open_file in (
        (ADAPTER_SAFETENSORS_FILE, open_safetensors),
        (ADAPTER_PYTORCH_FILE, open_pytorch),
    ):
        if has_member(folder, name):
            path = find_member(folder, name)
            tensors = {key.removeprefix(PREFIX): tensor for key, tensor in open_file(path).items()}
            return names.complete(tensors), path
    raise MissingFileError(
        f"{folder} has no {ADAPTER_SAFETENSORS_FILE} beside {ADAPTER_CONFIG_FILE}; fetch the whole"
        " adapter again"
    )


def write_adapter(
    folder: Path,
    config: Mapping[str, JsonValue],
    tensors: Mapping[str, LazyTensor],
    origin: AdapterOrigin,
    scale: float,
) -> dict[str, FileRecord]:
    """Write the config of the adapted model, and its adapter, whose tensors have foreign names."""
    rank = min(tensor.shape[0] for name, tensor in tensors.items() if name.endswith(KINDS[0]))
    make_folder(folder)
    family = find_family(config)
    prefix, classes = family.names.prefix, config["architectures"]
    kinds = [name for name, kind in TASK_TYPES.items() if [family.their_class(kind)] == classes]
    if is_own_head(config):  # PEFT knows the encoder alone
        kinds = [ENCODING]
    if kinds == [ENCODING]:
        tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    layers = [found[1] for name in tensors if (found := LAYER_OF_BLOCK.search(name))]
    heads = [name.removeprefix(prefix).split(".")[0] for name in tensors if MARK not in name]
    content = {
        "peft_type": "LORA",
        "task_type": kinds[0] if kinds else None,
        "base_model_name_or_path": origin.base,
        "revision": origin.revision,
        "r": rank,
        "lora_alpha": scale * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(dict.fromkeys(layers)),
        "modules_to_save": list(dict.fromkeys(heads)) or None,
        "inference_mode": True,
    }
    path = folder / ADAPTER_SAFETENSORS_FILE
    return {
        ADAPTED_FILE: write_json(folder / ADAPTED_FILE, {**config, BASE_KEY: origin.sha256}),
        ADAPTER_CONFIG_FILE: write_json(folder / ADAPTER_CONFIG_FILE, content),
        path.name: write_safetensors(path, {PREFIX + name: each for name, each in tensors.items()}),
    }


_is_in_base: ContextVar[bool] = ContextVar("_is_in_base", default=False)


def _open_base(folder: Path, adapter: AdapterConfig) -> Checkpoint:
    """Open the base model, whose folder may be named relative to the adapter's."""
    from bertkit.checkpoints.formats import open_checkpoint  # it opens adapters, too

    path, name = folder / ADAPTER_CONFIG_FILE, adapter.base_model_name_or_path
    if has_member(folder, CONFIG_FILE):  # as in transformers, the folder has the base model, too
        return open_huggingface(folder)
    if is_remote(name):
        raise UnsafeFileError(
            f"{path} names a URL as its base model; expected a folder, or the id of a model of the"
            " Hub"
        )
    if _is_in_base.get():
        raise CheckpointError(
            f"{folder} is an adapter, and the base of another one; merge it into its own base first"
        )
    token = _is_in_base.set(True)
    try:
        found = folder / name if is_on_disk(folder / name) else name
        return open_checkpoint(resolve_model(found, revision=adapter.revision))
    except MissingFileError:
        raise MissingFileError(
            f"{path} names {show(name)} as its base model, which is neither a model on this disk"
            " nor the id of one on the Hub; correct base_model_name_or_path there"
        ) from None
    finally:
        _is_in_base.reset(token)


def describe_adapted(
    config: Mapping[str, JsonValue], adapter: AdapterConfig, found: Mapping[str, LazyTensor]
) -> dict[str, JsonValue]:
    """Return the config of a base model as its adapter's task and head change it."""
    changed, labels, family = dict(config), config.get("id2label"), find_family(config)
    kind = TASK_TYPES.get(adapter.task_type or "")
    if kind is not None:
        changed["architectures"] = [family.their_class(kind)]
    [name] = family.names.table(kind).their_names(CLASSIFIER)
    head = found.get(name)
    if head is None or (isinstance(labels, dict) and len(labels) == head.shape[0]):
        return changed
    kept = {key: value for key, value in changed.items() if key not in ("label2id", "num_labels")}
    return {**kept, "id2label": {str(index): f"LABEL_{index}" for index in range(head.shape[0])}}


def _apply(
    base: Checkpoint, adapter: AdapterConfig, found: Mapping[str, LazyTensor], folder: Path
) -> dict[str, LazyTensor]:
    """Return the base model's tensors with updates added, and with those replaced that it has."""
    layers = list(dict.fromkeys(name.partition(MARK)[0] for name in found if MARK in name))
    factors = {layer: [found.get(f"{layer}{MARK}{kind}") for kind in KINDS] for layer in layers}
    tensors = {**base.tensors} | {name: each for name, each in found.items() if MARK not in name}
    problems = [] if layers else ["it updates no layer"]
    problems += [
        f"{show(name)} isn't part of a plain LoRA"
        for name in found
        if MARK in name and name.partition(MARK)[2] not in KINDS
    ]
    for layer, pair in factors.items():
        weight, (a, b) = base.tensors.get(f"{layer}.weight"), pair
        shape, down, up = (() if each is None else each.shape for each in (weight, a, b))
        if weight and a and b and all(down) and up[:1] + down[1:] == shape and up[1:] == down[:1]:
            scale = adapter.scale(layer, down[0])
            tensors[f"{layer}.weight"] = _add_update(weight, a, b, scale)
        else:
            shapes = " and ".join(str([*each]) for each in (up, down))
            problems.append(f"{show(layer)} is {[*shape]} there, and its factors are {shapes}")
    if problems:
        raise CheckpointError(
            f"{folder} isn't an adapter for {show(adapter.base_model_name_or_path)}:"
            f" {'; '.join(problems[:2])}; set base_model_name_or_path to the model it"
            " was trained on"
        )
    return tensors


def _add_update(weight: LazyTensor, a: LazyTensor, b: LazyTensor, scale: float) -> LazyTensor:
    """Return a weight with the update of two factors."""

    def read_stored() -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            sum_: Array = weight.read_float32() + scale * (b.read_float32() @ a.read_float32())
        return sum_

    return replace(weight, dtype=ElementType.F32, read_stored=read_stored)
