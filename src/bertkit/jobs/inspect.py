"""Describe a checkpoint of any format without running its model."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from bertkit.base.errors import BertkitError, MissingFileError, pluralize
from bertkit.base.json_files import read_json
from bertkit.base.wings import ANATOMIES, load_object
from bertkit.checkpoints import tensorflow
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.formats import FORMATS, FileDescription
from bertkit.checkpoints.huggingface import read_config
from bertkit.checkpoints.names import HEADS, EncoderNames, NameTable, count_parameters
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.checkpoints.sentence_modules import Dense, Module, Normalize, Pooling
from bertkit.checkpoints.transfer import list_problems, list_unequal_copies
from bertkit.models.bert.architectures import ARCHITECTURES, expected_shapes
from bertkit.models.bert.config import BertConfig, ModelConfig, describe_direction
from bertkit.models.open_model import OpenModel
from bertkit.tokenization.folder import read_folder
from bertkit.training.log import read_log
from bertkit.training.record import LOG_FILE, STATE_FILE, RunState, read_record

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Anatomy:
    """An encoder with heads, maybe without tensors, to compare with what its config requires.

    A wing's model is a subclass of its own, in `ANATOMIES`.
    """

    opened: OpenModel

    @property
    def unused_parts(self) -> Sequence[str]:
        """The parts of its files that loading ignores."""
        return self.opened.list_unused_heads(self.architecture, self.opened.shapes)

    @property
    def checkpoint(self) -> Checkpoint:
        """Its checkpoint."""
        return self.opened.checkpoint

    @property
    def names(self) -> "NameTable | EncoderNames":
        """The names of its tensors, whatever its class."""
        return self.opened.family.names

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads present, pooler included."""
        return self.opened.heads

    @property
    def architecture(self) -> str:
        """The class that the config names if the heads fit it, else the first that fits."""
        return self.opened.architecture

    def read_config(self) -> ModelConfig:
        """Read the config; errors as in `BertConfig.from_dict`."""
        return self.opened.config

    def expected(self, config: Any, architecture: str) -> Shapes:
        """Return names and shapes for the heads present or, without tensors, those of the class."""
        if self.checkpoint.tensors:
            return self.opened.shapes
        if architecture not in ARCHITECTURES:
            return {}
        heads = ARCHITECTURES[architecture].heads or {"pooler"}
        return expected_shapes(config, architecture, [head for head in HEADS if head in heads])

    def count_tensors(self) -> dict[str, int]:
        """Count the parameters of the checkpoint's tensors, by part."""
        shapes = {name: tensor.shape for name, tensor in self.checkpoint.tensors.items()}
        return count_parameters(shapes, self.names)

    def count_expected(self, config: Any, architecture: str) -> dict[str, int]:
        """Count the parameters that a config requires, by part."""
        parts: Counter[str] = Counter()
        for name, shape in self.expected(config, architecture).items():
            words = name.split(".")
            part = ".".join(words[: 2 if words[0] in ("encoder", "decoder") else 1])
            parts[part] += math.prod(shape)
        return dict(parts)

    @staticmethod
    def count_attention_heads(config: Any) -> int:
        """Count the attention heads of all layers."""
        return int(config.num_hidden_layers * config.num_attention_heads)

    @staticmethod
    def list_sizes(config: Mapping[str, Any], num_heads: int) -> Iterator[tuple[str, str]]:
        """Yield titles and descriptions of the sizes in a valid config."""
        sizes = BertConfig.from_dict(config, CONFIG_FILE)
        yield "sizes", describe_sizes(sizes)
        heads = f"{pluralize(num_heads, 'head')} ({sizes.num_attention_heads} in each layer)"
        yield "attention", heads
        if direction := describe_direction(config):
            yield "reads", direction


def find_anatomy(config: Mapping[str, JsonValue]) -> type[Anatomy]:
    """Return the class of models that a config names."""
    address = ANATOMIES.get(str(config.get("model_type")))
    return load_object(address) if address else Anatomy


def describe_sizes(config: BertConfig) -> str:
    """Describe the sizes of an encoder in words."""
    return (
        f"{pluralize(config.num_hidden_layers, 'layer')}, hidden {config.hidden_size},"
        f" feed-forward {config.intermediate_size}, vocabulary {config.vocab_size:,},"
        f" up to {pluralize(config.max_length, 'token')}"
    )


Found = TypeVar("Found")


@dataclass(frozen=True)
class ModelDescription:
    """Everything known about a checkpoint without running it.

    Attributes:
        num_attention_heads: total over all layers; None if the config can't be read.
    """

    folder: Path  # of its files
    format: str  # a key of `FORMATS`
    architecture: str  # named in `config.json` or inferred from its heads
    config: dict[str, Any]  # completed with defaults if bertkit supports it
    heads: tuple[str, ...]  # present, pooler included; none for the model of a wing
    labels: tuple[str, ...]  # of a classifier, by id
    num_attention_heads: int | None
    parameters: dict[str, int]  # by part; without weights, those that the config requires
    dtypes: dict[str, int]  # number of tensors by dtype
    tokenizer: dict[str, Any] | None  # vocabulary size and settings
    sentences: dict[str, Any] | None  # the modules that turn token vectors into a sentence vector
    training: dict[str, Any] | None  # steps, tokens and the last evaluation; None if it isn't a run
    files: tuple[FileDescription, ...]  # the config, the weights and related files
    dropped: tuple[str, ...]  # tensors that are copies of others or aren't weights
    problems: tuple[str, ...]  # what is wrong; a model without problems can be loaded

    @property
    def num_parameters(self) -> int:
        """Total number of parameters; tied ones count once."""
        return sum(self.parameters.values())

    def list_sizes(self) -> Iterator[tuple[str, str]]:
        """Yield titles and descriptions of the sizes in its config, if that can be read."""
        if self.num_attention_heads is not None:
            anatomy = find_anatomy(self.config)
            yield from anatomy.list_sizes(self.config, self.num_attention_heads)


@dataclass
class _Problems:
    """Collects problems while a checkpoint is read."""

    found: list[str] = field(default_factory=list)

    def attempt(self, read: Callable[[], Found], otherwise: Found) -> Found:
        """Return what `read` returns; on an error, record it and return `otherwise`."""
        try:
            return read()
        except BertkitError as error:
            self.found.append(str(error))
            return otherwise


def describe(path: str | Path, *, revision: str | None = None) -> ModelDescription:
    """Describe a checkpoint of any format, with the SHA-256 of each file."""
    problems = _Problems()
    opened = _open(OpenModel.open(path, revision=revision), problems)
    checkpoint, tensors = opened.checkpoint, opened.checkpoint.tensors
    anatomy = find_anatomy(checkpoint.config)(opened)
    config: ModelConfig | None = problems.attempt(anatomy.read_config, None)
    architecture = _find_architecture(anatomy, problems)
    names = anatomy.names
    table = names.table(architecture) if isinstance(names, EncoderNames) else names
    if config is not None and tensors:
        problems.found += problems.attempt(
            lambda: list_problems(
                tensors, anatomy.expected(config, architecture), table, anatomy.unused_parts
            ),
            [],
        )
        problems.found += problems.attempt(lambda: list_unequal_copies(tensors, table), [])

    def count_parameters() -> dict[str, int]:
        if tensors:
            return anatomy.count_tensors()
        return {} if config is None else anatomy.count_expected(config, architecture)

    def read_tokenizer() -> dict[str, Any] | None:
        try:
            definition = read_folder(opened.folder)
        except MissingFileError:
            return None
        opened.check_vocabulary(num_entries := len(definition.vocabulary))
        if definition.kind == "WordPiece":
            return {"entries": num_entries, **definition.settings.model_dump()}
        return {"entries": num_entries, "algorithm": definition.kind}

    return ModelDescription(
        folder=opened.folder,
        format=checkpoint.format,
        architecture=opened.family.their_class(architecture),
        config=checkpoint.config if config is None else config.to_dict(),
        heads=anatomy.heads,
        labels=config.labels
        if isinstance(config, BertConfig) and "classifier" in anatomy.heads
        else (),
        num_attention_heads=None if config is None else anatomy.count_attention_heads(config),
        parameters=problems.attempt(count_parameters, {}),
        dtypes=dict(Counter(t.dtype.value for t in tensors.values())),
        tokenizer=problems.attempt(read_tokenizer, None),
        sentences=problems.attempt(lambda: _describe_sentences(opened), None),
        training=problems.attempt(lambda: describe_training(opened), None),
        files=problems.attempt(opened.describe_files, ()),
        dropped=tuple(sorted({*names.dropped, *names.copies}.intersection(tensors))),
        problems=tuple(dict.fromkeys(problems.found)),
    )


def _open(opened: OpenModel, problems: _Problems) -> OpenModel:
    """Open a model's checkpoint, or only its config if its weights can't be read."""
    path = opened.path
    try:
        return replace(opened, opened=opened.checkpoint)
    except BertkitError as error:
        name = next((name for name, format_ in FORMATS.items() if format_.is_here(path)), None)
        if name is None:
            raise
        config_name = tensorflow.CONFIG_FILE if name == "tensorflow" else CONFIG_FILE
        try:
            folder = find_checkpoint(path if path.is_dir() else path.parent, reading=())
            config = read_config(folder, config_name)
        except BertkitError:
            raise error from None
        problems.found.append(str(error))
        lacking = Checkpoint(name, folder, config, {}, (folder / config_name,))
        return replace(opened, opened=lacking)


def _find_architecture(anatomy: Anatomy, problems: _Problems) -> str:
    """Return the model's class; for a folder without weights, the one that its config names."""
    checkpoint = anatomy.checkpoint
    nameless = Anatomy(replace(anatomy.opened, opened=replace(checkpoint, config={})))
    found = problems.attempt(lambda: anatomy.architecture, nameless.architecture)
    names = checkpoint.config.get("architectures")
    if isinstance(names, list) and names and not checkpoint.tensors:
        return anatomy.opened.family.our_class(str(names[0]))
    return found


def _describe_sentences(opened: OpenModel) -> dict[str, Any] | None:
    """Return the modules and settings of a sentence-transformers model; None for others."""
    model = opened.sentences
    if model is None:
        return None
    return {
        "modules": list(map(_describe_module, model.modules)),
        "max_seq_length": model.max_seq_length,
        "lowercase": model.lowercase,
        "prompts": model.prompts,
        "default_prompt": model.default_prompt,
        "similarity": model.similarity,
    }


def _describe_module(module: Module) -> str:
    match module:
        case Pooling():
            return f"pooling: {' + '.join(module.modes)}"
        case Dense():
            return f"dense: {module.in_features} → {module.out_features}, {module.activation}"
        case Normalize():
            return "normalize"


def describe_training(opened: OpenModel) -> dict[str, Any] | None:
    """Return a run's progress and settings; None for other folders."""
    path = opened.path
    record = read_record(path) if opened.checkpoint.format == "run_folder" else None
    if record is None:
        return None
    folder = find_checkpoint(path, reading=(STATE_FILE,))
    state = RunState.model_validate(read_json(folder / STATE_FILE))
    evaluations = [
        row for row in read_log(path / LOG_FILE, state.num_log_rows) if row["event"] == "eval"
    ]
    return {
        "steps": state.step,
        "of_steps": record.num_steps,
        "tokens": state.tokens,
        "elapsed_seconds": state.elapsed_seconds,
        "held_out": evaluations[-1] if evaluations else None,
        "settings": record.settings,
        "source": record.source or None,
    }
