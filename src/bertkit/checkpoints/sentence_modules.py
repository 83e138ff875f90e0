"""Modules after the encoder in a sentence-transformers folder: Pooling, Normalize, Dense.

Each module has a folder with a `config.json`. Class names are looked up in fixed tables; nothing
that a file names is imported or called. Unsupported keys and values raise an error that names them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, UnsafeFileError
from bertkit.base.files import make_folder
from bertkit.base.json_files import write_json
from bertkit.base.members import find_member, has_member
from bertkit.base.settings import validate
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.huggingface import WEIGHTS_FILE, open_weights, read_config
from bertkit.checkpoints.safetensors_file import write_safetensors
from bertkit.checkpoints.transfer import is_finite

MAX_MESSAGE_CHARS = 1000  # a foreign file may have any number of wrong keys

# Keys of all versions before 5.4, in the order in which their results are concatenated, and the
# mode names since 5.4.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# The keys that every version writes and text-embeddings-inference requires.
FIRST_FLAGS = tuple(POOLING_FLAGS)[:4]

# Our name: the class path in a Dense module's config.
ACTIVATIONS = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "silu": "torch.nn.modules.activation.SiLU",
}

SCORES = "scores"  # the result of a CrossEncoder's last module

Size = Annotated[int, Field(ge=1, le=1 << 24)]
Mode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


@dataclass(frozen=True)
class Pooling:
    """Pooling of a text's token vectors into one vector."""

    dimension: int  # features of a token
    modes: tuple[str, ...]  # values of `POOLING_FLAGS`; results are concatenated in this order
    include_prompt: bool = True  # whether the tokens of a prompt are pooled too

    @property
    def in_features(self) -> int:
        """Features of a token."""
        return self.dimension

    @property
    def out_features(self) -> int:
        """Size of the vector."""
        return self.dimension * len(self.modes)


@dataclass(frozen=True)
class Normalize:
    """Division of the vector by its Euclidean length."""


@dataclass(frozen=True)
class Dense:
    """A linear layer with an activation."""

    weight: LazyTensor  # `[out_features, in_features]`
    bias: LazyTensor | None  # `[out_features]`, or None
    activation: str  # a key of `ACTIVATIONS`
    is_scoring: bool = False  # whether it gives scores, in a CrossEncoder, and not a vector

    @property
    def in_features(self) -> int:
        """Size of the input vector."""
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        """Size of the output vector."""
        return self.weight.shape[0]


Module: TypeAlias = Pooling | Normalize | Dense


class ForeignConfig(BaseModel):
    """Base of the schemas for foreign files; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Config = TypeVar("Config", bound=ForeignConfig)


def parse_config(kind: type[Config], content: JsonValue, path: Path) -> Config:
    """Validate a foreign file's content against its schema."""
    return validate(kind, content, f"{path} isn't a file that bertkit reads", CheckpointError)


class _Ends(ForeignConfig):
    """The vectors that a module reads and writes; only the sentence embedding is supported."""

    module_input_name: Literal["sentence_embedding"] = "sentence_embedding"
    module_output_name: Literal["sentence_embedding"] | None = None


class _PoolingConfig(ForeignConfig):
    word_embedding_dimension: Size | None = None
    embedding_dimension: Size | None = None
    pooling_mode: Mode | list[Mode] | None = None
    pooling_mode_cls_token: bool | None = None
    pooling_mode_max_tokens: bool | None = None
    pooling_mode_mean_tokens: bool | None = None
    pooling_mode_mean_sqrt_len_tokens: bool | None = None
    pooling_mode_weightedmean_tokens: bool | None = None
    pooling_mode_lasttoken: bool | None = None
    include_prompt: bool = True


class _DenseConfig(_Ends):
    in_features: Size
    out_features: Size
    bias: bool = True
    activation_function: str = ACTIVATIONS["tanh"]  # sentence-transformers' own default
    use_residual: Literal[False] = False


def read_pooling(folder: Path, name: str) -> Pooling:
    """Read a Pooling module."""
    path = folder / name / CONFIG_FILE
    content = read_config(folder, f"{name}/{CONFIG_FILE}")
    config = parse_config(_PoolingConfig, content, path)
    dimensions = {config.word_embedding_dimension, config.embedding_dimension} - {None}
    if len(dimensions) != 1:
        raise CheckpointError(
            f"{path} must have one size under word_embedding_dimension or embedding_dimension"
        )
    flags = {flag: getattr(config, flag) for flag in POOLING_FLAGS}
    flagged = tuple(mode for flag, mode in POOLING_FLAGS.items() if flags[flag])
    modes: tuple[str, ...]
    if config.pooling_mode is None:
        if missing := [flag for flag in FIRST_FLAGS if flags[flag] is None]:
            raise CheckpointError(f"{path} must say {missing[0]}: true or false")
        modes = flagged
    else:
        named = config.pooling_mode
        modes = (named,) if isinstance(named, str) else tuple(named)
    if any(flag is not None for flag in flags.values()) and set(modes) != set(flagged):
        raise CheckpointError(f"{path}: pooling_mode and the keys that begin with it disagree")
    if not modes or len(set(modes)) < len(modes):
        raise CheckpointError(f"{path} must name at least one way of pooling, and none twice")
    (dimension,) = dimensions
    assert dimension is not None  # None was removed from the set
    return Pooling(dimension, modes, config.include_prompt)


def read_normalize(folder: Path, name: str) -> Normalize:
    """Read a Normalize module, which has no folder in most models."""
    if has_member(folder, f"{name}/{CONFIG_FILE}"):
        parse_config(_Ends, read_config(folder, f"{name}/{CONFIG_FILE}"), folder / name)
    return Normalize()


def read_dense(folder: Path, name: str) -> Dense:
    """Read a Dense module; its weights are checked, but loaded lazily."""
    path = folder / name / CONFIG_FILE
    config = parse_config(_DenseConfig, read_config(folder, f"{name}/{CONFIG_FILE}"), path)
    home = find_member(folder, name)
    tensors, (file, *_) = open_weights(home, "a Dense module", may_be_sharded=False)
    expected: dict[str, tuple[int, ...]] = {}
    expected["linear.weight"] = (config.out_features, config.in_features)
    if config.bias:
        expected["linear.bias"] = (config.out_features,)
    shapes = {tensor: lazy.shape for tensor, lazy in tensors.items()}
    if shapes != expected:
        shown = str(shapes)[:MAX_MESSAGE_CHARS]
        raise CheckpointError(f"{file} has the tensors {shown}; {path} means {expected}")
    for tensor, lazy in tensors.items():
        if not lazy.dtype.is_floating_point or not is_finite(lazy.read()):
            raise CheckpointError(f"{file}: {tensor} must hold finite floating-point numbers")
    name, known = config.activation_function, ", ".join(ACTIVATIONS.values())
    for ours, theirs in ACTIVATIONS.items():
        if name == theirs:
            return Dense(tensors["linear.weight"], tensors.get("linear.bias"), ours)
    if name.startswith("torch.nn."):
        raise CheckpointError(f"{path}: activation_function is {name[:80]!r}; known are {known}")
    raise UnsafeFileError(
        f"{path}: activation_function is {name[:80]!r}, code that bertkit doesn't run; known are"
        f" {known}"
    )


def write_module(folder: Path, name: str, module: Module) -> dict[str, FileRecord]:
    """Write a module's folder; Normalize has none. The files are by name in the model's folder."""
    if isinstance(module, Normalize):
        return {}
    make_folder(folder / name)
    config_name, weights_name = f"{name}/{CONFIG_FILE}", f"{name}/{WEIGHTS_FILE}"
    if isinstance(module, Pooling):
        return {config_name: write_json(folder / config_name, _describe_pooling(module))}
    content = {
        "in_features": module.in_features,
        "out_features": module.out_features,
        "bias": module.bias is not None,
        "activation_function": ACTIVATIONS[module.activation],
    }
    if module.is_scoring:
        content["module_output_name"] = SCORES
    tensors = {"linear.weight": module.weight}
    if module.bias is not None:
        tensors["linear.bias"] = module.bias
    return {
        config_name: write_json(folder / config_name, content),
        weights_name: write_safetensors(folder / weights_name, tensors),
    }


def _describe_pooling(pooling: Pooling) -> dict[str, JsonValue]:
    """Return the config with the oldest keys that can express it.

    Source: `PoolConfig` in router/src/lib.rs of text-embeddings-inference requires the first four.
    """
    flags = {flag: mode in pooling.modes for flag, mode in POOLING_FLAGS.items()}
    in_order = tuple(mode for flag, mode in POOLING_FLAGS.items() if flags[flag])
    content: dict[str, JsonValue]
    if pooling.modes == in_order:
        used = {flag: is_on for flag, is_on in flags.items() if is_on or flag in FIRST_FLAGS}
        content = {"word_embedding_dimension": pooling.dimension, **used}
    else:
        content = {"embedding_dimension": pooling.dimension, "pooling_mode": list(pooling.modes)}
    return content if pooling.include_prompt else {**content, "include_prompt": False}
