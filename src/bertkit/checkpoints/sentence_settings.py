"""The settings files of a sentence-transformers folder.

Settings that would change the result in an unsupported way raise an error that names them; those
that only concern other programs are kept.
"""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from bertkit.base.errors import CheckpointError, UnsafeFileError
from bertkit.base.members import has_member
from bertkit.checkpoints.huggingface import read_config
from bertkit.checkpoints.sentence_modules import ForeignConfig, Size, parse_config

ENCODER_FILE = "sentence_bert_config.json"
SETTINGS_FILE = "config_sentence_transformers.json"
TOKENIZER_FILE = "tokenizer_config.json"
MODEL_TYPE = "SentenceTransformer"
SCORING_TYPE = "CrossEncoder"  # the class that gives a text or a pair scores
MAX_PROMPT_CHARS = 100_000  # far more than any encoder can use
MAX_DEPTH = 16  # nesting of values kept unchanged; sentence-transformers writes 3 levels
DEFAULT_POSITIONS = 512  # the default of transformers, if config.json has none
# The encoder's output for text; other entries are for images, audio or chats.
TEXT_ONLY: dict[str, JsonValue] = {
    "text": {"method": "forward", "method_output_name": "last_hidden_state"}
}
Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARS)]
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Nothing = Annotated[dict[str, JsonValue], Field(max_length=0)] | None


class EncoderSettings(ForeignConfig):
    """The supported part of `sentence_bert_config.json`.

    Arguments for transformers must be empty; settings of other kinds of models are rejected.
    """

    max_seq_length: Size | None = None
    do_lower_case: bool = False
    transformer_task: Literal["feature-extraction"] = "feature-extraction"
    module_output_name: Literal["token_embeddings"] = "token_embeddings"
    modality_config: dict[str, JsonValue] = TEXT_ONLY
    unpad_inputs: bool | None = None  # speed only
    model_args: Nothing = None
    tokenizer_args: Nothing = None
    config_args: Nothing = None
    model_kwargs: Nothing = None
    processor_kwargs: Nothing = None
    config_kwargs: Nothing = None
    processing_kwargs: Nothing = None


class SentenceSettings(ForeignConfig):
    """`config_sentence_transformers.json`; unused keys are kept in `model_extra`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]  # when sphinx imports this, pydantic can't infer the type

    model_type: str = MODEL_TYPE
    prompts: dict[str, Prompt | None] = Field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity_fn_name: Similarity | None = None
    truncate_dim: Size | None = None


def read_encoder_settings(home: Path) -> EncoderSettings:
    """Read the settings in the encoder's folder, or return the defaults if there is no file."""
    if not has_member(home, ENCODER_FILE):
        return EncoderSettings()
    path = home / ENCODER_FILE
    settings = parse_config(EncoderSettings, read_config(home, ENCODER_FILE), path)
    if settings.modality_config != TEXT_ONLY:
        raise CheckpointError(f"{path}: modality_config must be {TEXT_ONLY}, text alone")
    return settings


def read_settings(folder: Path) -> SentenceSettings:
    """Read the model's settings, or return the defaults if there is no file."""
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


def _check_kept(path: Path, value: JsonValue, depth: int = 0) -> None:
    """Check that kept values aren't nested too deeply to be written back."""
    if depth > MAX_DEPTH:
        raise UnsafeFileError(f"{path} is nested over {MAX_DEPTH} deep; no such file needs it")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_kept(path, item, depth + 1)


def read_size(home: Path, config: Mapping[str, JsonValue], key: str, default: int) -> int:
    """Return a size from the encoder's config."""
    value = config.get(key, default)
    if type(value) is not int or value < 1:
        raise CheckpointError(
            f"{home}: {key} in config.json must be a size, not {reprlib.repr(value)}"
        )
    return value


def find_length(home: Path, config: Mapping[str, JsonValue], stated: int | None) -> int:
    """Return the maximum number of tokens per text, as sentence-transformers determines it.

    Since version 5.4 it uses the tokenizer's `model_max_length`, which is a huge number if the
    length is unknown.
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
    if not isinstance(length, int | float) or isinstance(length, bool) or not length >= 1:
        raise CheckpointError(
            f"{home / TOKENIZER_FILE}: model_max_length must be a number of tokens, not"
            f" {reprlib.repr(length)}"
        )
    return int(min(length, positions))
