"""Adapters in PEFT's format that are broken or hostile; their base model lies beside, and is whole.

Every door opens the base model, too, so all of them tell what is wrong.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from tests.hostile.case import Case, Defects, make_cases
from tests.hostile.whole import to_json, weights_file
from torch import Tensor

from bertkit.base.errors import CheckpointError, DamagedFileError, MissingFileError, UnsafeFileError

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "task_type": None,
    "base_model_name_or_path": "../outside",
    "r": 2,
    "lora_alpha": 4,
    "target_modules": ["query"],
}
LAYER = "base_model.model.bert.encoder.layer.{layer}.attention.self.query.lora_{factor}.weight"
FACTORS = {
    LAYER.format(layer=layer, factor=factor): torch.full(shape, 0.1)
    for layer in (0, 1)
    for factor, shape in (("A", (2, 8)), ("B", (8, 2)))
}
A, B = (LAYER.format(layer=0, factor=factor) for factor in "AB")
REGEX = "(a+)+$"  # takes exponential time on a long name


def adapter_folder(changes: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """The files of a whole adapter with some replaced or added, and those of None left out."""
    files: dict[str, bytes | None] = {
        CONFIG_FILE: to_json(CONFIG),
        WEIGHTS_FILE: weights_file(FACTORS),
        **changes,
    }
    return {name: content for name, content in files.items() if content is not None}


def configured(**values: Any) -> dict[str, bytes]:
    """The config with other values."""
    return {CONFIG_FILE: to_json({**CONFIG, **values})}


def weighing(changes: Mapping[str, Tensor | None]) -> dict[str, bytes]:
    """The weights with some replaced or added, and those of None left out."""
    tensors = {**FACTORS, **changes}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    return {WEIGHTS_FILE: weights_file(kept)}


def cases() -> Iterator[Case]:
    """All of them."""
    yield from make_cases({**_configs(), **_bases(), **_weights()}, adapter_folder)
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        files, target = adapter_folder({name: None}), {name: "{outside}/config.json"}
        defect = "adapters: a link that leads out"
        yield Case(defect, len(name), files, UnsafeFileError, "leads out of its", links=target)


def _configs() -> Defects:
    other_kinds = ({"use_dora": True}, {"lora_bias": True}, {"fan_in_fan_out": True})
    others = (*other_kinds, {"init_lora_weights": "pissa"}, {"alpha_pattern": {REGEX: 4}})
    wrong = [{"peft_type": "IA3"}, {"bias": "all"}, {"r": 0}, {"r": 1 << 40}, {"lora_alpha": "x"}]
    return {
        ("adapters: a whole one", None, ""): [{}, configured(use_rslora=True)],
        ("adapters: a config that isn't JSON", DamagedFileError, "isn't JSON"): [
            {CONFIG_FILE: b"{"}
        ],
        ("adapters: an oversized config", DamagedFileError, "more than 1,048,576 bytes"): [
            {CONFIG_FILE: b'{"x": "' + b" " * (2 << 20) + b'"}'}
        ],
        ("adapters: another kind", CheckpointError, "isn't supported; expected a plain LoRA"): [
            configured(**values) for values in others
        ],
        ("adapters: wrong values", CheckpointError, "adapter_config.json: "): [
            configured(**values) for values in wrong
        ],
    }


def _bases() -> Defects:
    return {
        ("adapters: no base model", MissingFileError, "correct base_model_name_or_path"): [
            configured(base_model_name_or_path=name)
            for name in ("../nowhere", "/dev/zero", "a" * 4000, "\x1b[2J")
        ],
        ("adapters: a base model at a URL", UnsafeFileError, "names a URL as its base model"): [
            configured(base_model_name_or_path=name) for name in ("s3://bucket/m", "http://h/m")
        ],
        ("adapters: an adapter of itself", CheckpointError, "the base of another one"): [
            configured(base_model_name_or_path=".")
        ],
    }


def _weights() -> Defects:
    huge = {A: torch.full((2, 8), float("nan")), B: torch.full((8, 2), float("inf"))}
    misfits: list[dict[str, Tensor | None]] = [
        {A: None},
        {A: torch.ones(2, 9)},
        {A: torch.ones(3, 8)},
        {A: torch.ones(2, 8, 1)},
        {A: torch.ones(0, 8), B: torch.ones(8, 0)},
        {B: torch.ones(16)},
        {"base_model.model.os.system.lora_A.weight": torch.ones(2, 8)},
        {A.replace("query", "query.lora_embedding"): torch.ones(2, 8)},
        {A.replace("lora_A.weight", "lora_magnitude_vector"): torch.ones(8)},
    ]
    return {
        ("adapters: no weights", MissingFileError, "has no adapter_model.safetensors"): [
            {WEIGHTS_FILE: None}
        ],
        ("adapters: factors that don't fit", CheckpointError, "isn't an adapter for"): [
            *map(weighing, misfits),
            {WEIGHTS_FILE: weights_file({})},
        ],
        ("adapters: weights that aren't finite", CheckpointError, "NaN or infinity"): [
            weighing({name: tensor}) for name, tensor in huge.items()
        ],
        ("adapters: cut-off weights", DamagedFileError, "isn't a whole safetensors file"): [
            {WEIGHTS_FILE: weights_file(FACTORS)[:100]}
        ],
    }
