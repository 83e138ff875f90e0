"""The settings of a sentence-transformers folder: of its encoder, and of the whole.

What changes the result in a way that isn't done here is refused by name; what is only for other
programs is kept.
"""

import reprlib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from bertkit.base.errors import CheckpointError, UnsafeFileError
from bertkit.base.members import has_member
from bertkit.checkpoints.huggingface import read_config
from bertkit.checkpoints.sentence_transformers.modules import ForeignConfig, Size, parse_config

ENCODER_FILE = "sentence_bert_config.json"
SETTINGS_FILE = "config_sentence_transformers.json"
TOKENIZER_FILE = "tokenizer_config.json"

MODEL_TYPE = "SentenceTransformer"
MAX_PROMPT_CHARS = 100_000  # far over what any encoder takes
MAX_DEPTH = 16  # of values that are kept as they are; what sentence-transformers writes has 3
DEFAULT_POSITIONS = 512  # transformers' own, where config.json doesn't say

# What the encoder hands on; other entries are of images, sound or chats.
TEXT_ONLY = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}

Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARS)]
Nothing = Annotated[dict[str, Any], Field(max_length=0)] | None


class EncoderSettings(ForeignConfig):
    """`sentence_bert_config.json`, as far as it may go.

    Keys that reach into transformers must be empty, and those of other kinds of models are unknown.
    """

    max_seq_length: Size | None = None
    do_lower_case: bool = False
    transformer_task: Literal["feature-extraction"] = "feature-extraction"
    module_output_name: Literal["token_embeddings"] = "token_embeddings"
    modality_config: dict[str, Any] = TEXT_ONLY
    unpad_inputs: bool | None = None  # speed only
    model_args: Nothing = None
    tokenizer_args: Nothing = None
    config_args: Nothing = None
    model_kwargs: Nothing = None
    processor_kwargs: Nothing = None
    config_kwargs: Nothing = None
    processing_kwargs: Nothing = None


class SentenceSettings(ForeignConfig):
    """`config_sentence_transformers.json`; other keys are kept in `model_extra`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]  # as sphinx imports it, pydantic finds no type for the rest

    model_type: str = MODEL_TYPE
    prompts: dict[str, Prompt | None] = Field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity_fn_name: Literal["cosine", "dot", "euclidean", "manhattan"] | None = None
    truncate_dim: Size | None = None


def read_encoder_settings(home: Path) -> EncoderSettings:
    """Read the settings in the encoder's folder, or what holds where there are none."""
    if not has_member(home, ENCODER_FILE):
        return EncoderSettings()
    path = home / ENCODER_FILE
    settings = parse_config(EncoderSettings, read_config(home, ENCODER_FILE), path)
    if settings.modality_config != TEXT_ONLY:
        raise CheckpointError(f"{path}: modality_config must be {TEXT_ONLY}, text alone")
    return settings


def read_settings(folder: Path) -> SentenceSettings:
    """Read the settings of the whole, or what holds where there are none."""
    if not has_member(folder, SETTINGS_FILE):
        return SentenceSettings()
    path = folder / SETTINGS_FILE
    content = read_config(folder, SETTINGS_FILE)
    if (kind := content.get("model_type", MODEL_TYPE)) != MODEL_TYPE:
        raise CheckpointError(
            f"{path} is of a {reprlib.repr(kind)}, and bertkit reads {MODEL_TYPE}; without"
            " modules.json the folder is read as an encoder with its head"
        )
    settings = parse_config(SentenceSettings, content, path)
    name = settings.default_prompt_name
    if name is not None and settings.prompts.get(name) is None:
        raise CheckpointError(f"{path}: default_prompt_name ({name[:80]!r}) isn't one of prompts")
    _check_kept(path, settings.model_extra)
    return settings


def _check_kept(path: Path, value: object, depth: int = 0) -> None:
    """What is only kept must be something that can be written back."""
    if depth > MAX_DEPTH:
        raise UnsafeFileError(f"{path} is nested over {MAX_DEPTH} deep; no such file needs it")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_kept(path, item, depth + 1)


def read_size(home: Path, config: dict[str, Any], key: str, default: int) -> int:
    """A size in the encoder's config."""
    value = config.get(key, default)
    if type(value) is not int or value < 1:
        raise CheckpointError(
            f"{home}: {key} in config.json must be a size, not {reprlib.repr(value)}"
        )
    return value


def find_length(home: Path, config: dict[str, Any], stated: int | None) -> int:
    """Tokens after which a text is cut, as sentence-transformers finds them.

    Since version 5.4 it leaves them to the tokenizer's `model_max_length`, a huge number where
    nothing is known.

    Args:
        home: the encoder's folder.
        config: its `config.json`.
        stated: what its own settings say.
    """
    positions = read_size(home, config, "max_position_embeddings", DEFAULT_POSITIONS)
    if stated is not None:
        if stated > positions:
            raise CheckpointError(
                f"{home / ENCODER_FILE}: max_seq_length ({stated}) is over the"
                f" max_position_embeddings ({positions}) of config.json"
            )
        return stated
    if not has_member(home, TOKENIZER_FILE):
        return positions
    length = read_config(home, TOKENIZER_FILE).get("model_max_length", positions)
    if type(length) not in (int, float) or not length >= 1:
        raise CheckpointError(
            f"{home / TOKENIZER_FILE}: model_max_length must be a number of tokens, not"
            f" {reprlib.repr(length)}"
        )
    return int(min(length, positions))
