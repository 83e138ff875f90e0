"""Folders of sentence-transformers: settings and the modules that their list names.

Settings that would change the result in an unsupported way raise an error that names them; those
that only concern other programs are kept.
"""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, DamagedFileError, UnsafeFileError
from bertkit.base.files import make_folder
from bertkit.base.json_files import read_json, write_json
from bertkit.base.members import check_name, find_member, has_member
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.file_names import MAX_MODULES, MODULES_FILE, MODULES_LIMIT_BYTES
from bertkit.checkpoints.huggingface import MODEL_CONFIGS, read_config
from bertkit.checkpoints.peft import open_folder
from bertkit.checkpoints.sentence_modules import (
    ForeignConfig,
    Module,
    Normalize,
    Size,
    parse_config,
    read_dense,
    read_normalize,
    read_pooling,
    write_module,
)
from bertkit.checkpoints.transfer import is_own_head

ENCODER_FILE = "sentence_bert_config.json"
SETTINGS_FILE = "config_sentence_transformers.json"
TOKENIZER_FILE = "tokenizer_config.json"
MODEL_TYPE = "SentenceTransformer"
SCORING_TYPE = "CrossEncoder"  # the class that gives a text or a pair scores
MAX_PROMPT_CHARS = 100_000  # far more than any encoder can use
MAX_DEPTH = 16  # nesting of values kept unchanged; sentence-transformers writes 3 levels
# The encoder's output for text; other entries are for images, audio or chats.
TEXT_ONLY: dict[str, JsonValue] = {
    "text": {"method": "forward", "method_output_name": "last_hidden_state"}
}
# What the encoder of a CrossEncoder says, if its model scores texts.
SCORING_ENCODER: dict[str, JsonValue] = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "scores",
}
CROSS_ENCODER_FILES = (MODULES_FILE, SETTINGS_FILE, ENCODER_FILE)
Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARS)]
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Nothing = Annotated[dict[str, JsonValue], Field(max_length=0)] | None

# Class path in `modules.json`: our name. Up to version 5.3 all classes were in one package, whose
# old paths still work and are therefore the ones written.
WRITTEN_TYPES = "sentence_transformers.models"
MODULE_TYPES = {
    f"{WRITTEN_TYPES}.Transformer": "Transformer",
    f"{WRITTEN_TYPES}.Pooling": "Pooling",
    f"{WRITTEN_TYPES}.Normalize": "Normalize",
    f"{WRITTEN_TYPES}.Dense": "Dense",
    "sentence_transformers.base.modules.transformer.Transformer": "Transformer",
    "sentence_transformers.sentence_transformer.modules.pooling.Pooling": "Pooling",
    "sentence_transformers.base.modules.normalize.Normalize": "Normalize",
    "sentence_transformers.sentence_transformer.modules.normalize.Normalize": "Normalize",
    "sentence_transformers.base.modules.dense.Dense": "Dense",
}
READERS: dict[str, Callable[[Path, str], Module]] = {
    "Pooling": read_pooling,
    "Normalize": read_normalize,
    "Dense": read_dense,
}


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


@dataclass(frozen=True)
class SentenceModel:
    """Everything in a model's folder other than the encoder."""

    modules: tuple[Module, ...]  # those after the encoder, pooling first
    max_seq_length: int  # special tokens included; longer texts are truncated
    lowercase: bool = False  # whether text is lowercased before tokenization
    prompts: dict[str, str] = field(default_factory=dict)  # prefixes for texts, by name
    default_prompt: str | None = None
    similarity: Similarity | None = None
    # number of leading features that are kept; None keeps all
    truncate_dimension: int | None = None
    is_scoring: bool = False  # whether the last module gives scores, in a CrossEncoder
    # unused keys of `config_sentence_transformers.json`, preserved
    other: dict[str, JsonValue] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        """Number of features of a sentence's vector."""
        sizes = [layer.out_features for layer in self.modules if not isinstance(layer, Normalize)]
        return min(sizes[-1], self.truncate_dimension or sizes[-1])


class _Entry(ForeignConfig):
    idx: int | None = None
    name: str
    path: str
    type: str
    kwargs: list[str] | None = None


class _Modules(ForeignConfig):
    modules: Annotated[list[_Entry], Field(min_length=1, max_length=MAX_MODULES)]


def is_sentence_transformers(folder: Path) -> bool:
    """Whether a folder contains `modules.json`, not only for other tools to read bertkit's head."""
    if not has_member(folder, MODULES_FILE):
        return False
    is_own = any(
        has_member(folder, name) and is_own_head(read_config(folder, name))
        for name in MODEL_CONFIGS
    )
    return not is_own and not is_cross_encoder(folder)


def is_cross_encoder(folder: Path) -> bool:
    """Whether a folder is a CrossEncoder's without modules: an encoder with its head, as others."""
    if not all(has_member(folder, name) for name in CROSS_ENCODER_FILES):
        return False
    settings, encoder = (read_config(folder, name) for name in CROSS_ENCODER_FILES[1:])
    if settings.get("model_type") != SCORING_TYPE or encoder != SCORING_ENCODER:
        return False
    has_prompt = settings.get("default_prompt_name") is not None
    return not has_prompt and [entry.path for entry in _read_entries(folder)] == [""]


def list_module_folders(folder: Path) -> list[str]:
    """Return the modules' own folders, with a slash at the end."""
    paths = (PurePosixPath(entry.path) for entry in _read_entries(folder))
    return list(dict.fromkeys(f"{path}/" for path in paths if path.parts))


def open_sentence_transformers(folder: Path) -> Checkpoint:
    """Open the encoder; it and its tokenizer are in the model's folder or in a subfolder."""
    entries = _read_entries(folder)
    name = str(PurePosixPath(entries[0].path))
    checkpoint = open_folder(folder if name == "." else find_member(folder, name))
    files = (folder / MODULES_FILE, *checkpoint.files)
    return replace(checkpoint, format="sentence_transformers", files=files)


def read_sentence_model(folder: Path, encoder: Checkpoint) -> SentenceModel:
    """Read everything except the encoder, which `open_sentence_transformers` opened."""
    home = encoder.folder
    config = find_family(encoder.config).config.from_dict(encoder.config, home)
    settings = read_settings(folder)
    entries = _read_entries(folder)
    kinds = [MODULE_TYPES[entry.type] for entry in entries]
    if kinds[1:2] != ["Pooling"] or kinds.count("Pooling") > 1:
        raise CheckpointError(
            f"{folder / MODULES_FILE} lists {', '.join(kinds)}; expected Transformer, Pooling, and"
            " then any of Normalize and Dense"
        )
    modules = tuple(
        READERS[kind](folder, str(PurePosixPath(entry.path)))
        for kind, entry in zip(kinds[1:], entries[1:], strict=True)
    )
    _check_sizes(folder, modules, config.hidden_size)
    encoding = read_encoder_settings(home)
    return SentenceModel(
        modules=modules,
        max_seq_length=find_length(home, config, encoding.max_seq_length),
        lowercase=encoding.do_lower_case,
        prompts={name: text for name, text in settings.prompts.items() if text is not None},
        default_prompt=settings.default_prompt_name,
        similarity=settings.similarity_fn_name,
        truncate_dimension=settings.truncate_dim,
        other=settings.model_extra or {},
    )


def write_sentence_model(folder: Path, model: SentenceModel) -> dict[str, FileRecord]:
    """Write everything except the encoder and its tokenizer, which go into the same folder.

    Source: the keys that text-embeddings-inference requires are those of `STConfig`, `NewSTConfig`
    and `PoolConfig` in its router/src/lib.rs.
    """
    make_folder(folder)
    records: dict[str, FileRecord] = {}
    entries = [{"idx": 0, "name": "0", "path": "", "type": f"{WRITTEN_TYPES}.Transformer"}]
    for index, module in enumerate(model.modules, start=1):
        kind = type(module).__name__
        path = f"{index}_{kind}"
        entries.append(
            {"idx": index, "name": str(index), "path": path, "type": f"{WRITTEN_TYPES}.{kind}"}
        )
        records |= write_module(folder, path, module)
    encoder = {"max_seq_length": model.max_seq_length, "do_lower_case": model.lowercase}
    settings = {
        **model.other,
        "model_type": SCORING_TYPE if model.is_scoring else MODEL_TYPE,
        "prompts": model.prompts,
        "default_prompt_name": model.default_prompt,
        "similarity_fn_name": model.similarity,
    }
    if model.truncate_dimension is not None:
        settings["truncate_dim"] = model.truncate_dimension
    records[ENCODER_FILE] = write_json(folder / ENCODER_FILE, encoder)
    records[SETTINGS_FILE] = write_json(folder / SETTINGS_FILE, settings)
    records[MODULES_FILE] = write_json(folder / MODULES_FILE, entries)
    return records


def _read_entries(folder: Path) -> list[_Entry]:
    """Return the listed modules after checking them: known kinds, one encoder, which is first."""
    path = find_member(folder, MODULES_FILE)
    content = read_json(path, limit_bytes=MODULES_LIMIT_BYTES)
    if not isinstance(content, list):
        raise DamagedFileError(f"{path} must be a list of modules")
    entries = parse_config(_Modules, {"modules": content}, path).modules
    for index, entry in enumerate(entries):
        _check_entry(path, index, entry)
    if len({entry.name for entry in entries}) < len(entries):
        raise DamagedFileError(f"{path} gives two modules one name; write or fetch it again")
    return entries


def _check_entry(path: Path, index: int, entry: _Entry) -> None:
    kind = MODULE_TYPES.get(entry.type)
    shown = repr(entry.type[:80])
    known = ", ".join(dict.fromkeys(MODULE_TYPES.values()))
    if kind is None and not entry.type.startswith("sentence_transformers."):
        raise UnsafeFileError(
            f"{path} names the module {shown}, code of the model's own, which bertkit never runs;"
            f" modules may be {known}"
        )
    if kind is None:
        raise CheckpointError(f"{path} names the module {shown}; bertkit does {known}")
    if (kind == "Transformer") != (index == 0):
        raise CheckpointError(f"{path} has {kind} in place {index}; the Transformer comes first")
    if entry.idx not in (None, index):
        raise DamagedFileError(f"{path} calls the module in place {index} number {entry.idx}")
    if entry.kwargs:
        raise CheckpointError(f"{path}: {kind} takes {entry.kwargs[0][:80]!r} of each call")
    if PurePosixPath(entry.path).parts:
        check_name(path, entry.path)
    elif index:
        raise CheckpointError(f"{path}: {kind} must have a folder of its own")


def _check_sizes(folder: Path, modules: tuple[Module, ...], size: int) -> None:
    """Check that each module's input size is the output size of the one before it."""
    for module in modules:
        if isinstance(module, Normalize):
            continue
        if module.in_features != size:
            raise CheckpointError(
                f"{folder}: {type(module).__name__} takes {module.in_features} features, and what"
                f" is before it gives {size}"
            )
        size = module.out_features


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


def find_length(home: Path, config: Any, stated: int | None) -> int:
    """Return the maximum number of tokens per text, as sentence-transformers determines it.

    Since version 5.4 it uses the tokenizer's `model_max_length`, which is a huge number if the
    length is unknown. A RoBERTa's positions don't begin at 0, which it doesn't know: it states 514
    where the 513th token is an error.
    """
    positions, limit = config.max_position_embeddings, config.max_length
    if stated is not None:
        if stated > positions:
            raise CheckpointError(
                f"{home / ENCODER_FILE}: max_seq_length ({stated}) is over the"
                f" max_position_embeddings ({positions}) of config.json"
            )
        return int(min(stated, limit))
    if not has_member(home, TOKENIZER_FILE):
        return int(limit)
    length = read_config(home, TOKENIZER_FILE).get("model_max_length", limit)
    if not isinstance(length, int | float) or isinstance(length, bool) or not length >= 1:
        raise CheckpointError(
            f"{home / TOKENIZER_FILE}: model_max_length must be a number of tokens, not"
            f" {reprlib.repr(length)}"
        )
    return int(min(length, limit))
