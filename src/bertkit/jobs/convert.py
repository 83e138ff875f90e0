"""Convert a checkpoint of any format to a Hugging Face folder."""

import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import (
    CheckpointError,
    InputError,
    MissingFileError,
    SettingsError,
    UnsafeFileError,
    storage_errors,
)
from bertkit.base.files import check_is_file, durable_folder, write_file
from bertkit.base.members import find_member, has_member
from bertkit.base.output import list_names, open_output
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.elements import Array, ElementType, narrow, widen
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.checkpoints.huggingface import write_huggingface
from bertkit.checkpoints.names import count_parameters
from bertkit.checkpoints.sentence_modules import Dense, Module
from bertkit.checkpoints.sentence_transformers import (
    CROSS_ENCODER_FILES,
    SentenceModel,
    is_cross_encoder,
    write_sentence_model,
)
from bertkit.checkpoints.transfer import is_finite, list_problems, list_unequal_copies, report
from bertkit.jobs.settings import ConvertSettings
from bertkit.models.bert.arrays import describe_config, store_head
from bertkit.models.bert.feature_head import describe_modules
from bertkit.models.open_model import OpenModel
from bertkit.tasks.saved import requires_pairs
from bertkit.tokenization.folder import FILES_OF_OTHERS, read_folder, write_folder
from bertkit.tokenization.names import ADDED_FILE, CONFIG_FILE, ENGINE_FILE, VOCABULARY_FILE

# The files of a tokenizer that bertkit can't read; they are copied unchanged.
FOREIGN_FILES = (VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE, ADDED_FILE, *FILES_OF_OTHERS)
# Other files to copy: documentation, a fine-tuned model's task, the names of the special tokens.
OTHER_FILES = ("README.md", "LICENSE", "LICENSE.txt", TASK_FILE, "special_tokens_map.json")
MUST_LOWERCASE = "other programs must lowercase texts: the tokenizer doesn't"
MAX_COPIED_BYTES = 64 << 20


Written = tuple[dict[str, FileRecord], tuple[str, ...]]


def write_companions(source: OpenModel, folder: Path, sentences: SentenceModel | None) -> Written:
    """Write everything beside config and weights; return the files by name, and remarks."""
    files: dict[str, FileRecord] = {}
    if sentences is not None:
        files |= write_sentence_model(folder, sentences) | copy_files(source.path, folder)
    elif is_cross_encoder(source.path):
        files |= copy_files(source.path, folder, CROSS_ENCODER_FILES)
    written, notes = write_tokenizer(source, folder, sentences)
    return files | written | copy_files(source.folder, folder), notes


def write_tokenizer(source: OpenModel, folder: Path, sentences: SentenceModel | None) -> Written:
    """Write the tokenizer of a model anew, or copy one that bertkit can't read.

    It gets what the files of sentence-transformers say beside it, which other programs don't read:
    the maximum length, and that texts are lowercased.
    """
    home = source.folder
    try:
        definition = read_folder(home)
    except MissingFileError as error:
        return {}, (f"there is no tokenizer: {error}",)
    except InputError as error:
        note = f"bertkit can't read the tokenizer; it was copied unchanged ({error})"
        return copy_files(home, folder, FOREIGN_FILES), (note, *list_unknown(source, sentences))
    source.check_vocabulary(len(definition.vocabulary))
    max_length, notes = source.model_max_length or source.config.max_length, tuple[str, ...]()
    if sentences is not None:
        max_length = sentences.max_seq_length
    if sentences is not None and sentences.lowercase and not definition.settings.lowercase:
        if definition.source:  # is written as it was
            notes = (MUST_LOWERCASE,)
        else:
            settings = definition.settings.model_copy(update={"lowercase": True})
            definition = replace(definition, settings=settings)
    return write_folder(folder, definition, max_length=max_length), notes


def list_unknown(source: OpenModel, sentences: SentenceModel | None) -> tuple[str, ...]:
    """List what other programs must do before a tokenizer that doesn't do it."""
    if sentences is None:
        return ()
    notes = []
    if sentences.lowercase:
        notes.append(MUST_LOWERCASE)
    if (source.model_max_length or sys.maxsize) > sentences.max_seq_length:
        notes.append(
            f"other programs must truncate texts to {sentences.max_seq_length:,} tokens: the"
            " tokenizer doesn't"
        )
    return tuple(notes)


def copy_files(
    source: Path, folder: Path, names: tuple[str, ...] = OTHER_FILES
) -> dict[str, FileRecord]:
    """Copy the named small files that exist."""
    records = {}
    for name in names:
        if has_member(source, name):
            path = find_member(source, name)
            check_is_file(path)
            with storage_errors(path, "read"), path.open("rb") as stream:
                content = stream.read(MAX_COPIED_BYTES + 1)
            if len(content) > MAX_COPIED_BYTES:
                raise UnsafeFileError(
                    f"{path} has more than {MAX_COPIED_BYTES:,} bytes, the limit for"
                    " copied files; move it away"
                )
            records[name] = write_file(folder / name, content)
    return records


def convert_weights(
    source: OpenModel, dtype: ElementType | None, progress: ProgressBar
) -> dict[str, LazyTensor]:
    """Check each tensor against the config; only tied copies are read yet."""
    tensors = source.checkpoint.tensors
    names = source.family.names.table(source.architecture)
    unused = source.list_unused_heads(source.architecture, source.shapes)
    problems = list_problems(tensors, source.shapes, names, unused)
    report(problems or list_unequal_copies(tensors, names), source.folder)
    kept = [name for name in tensors if name not in names.dropped and name not in names.copies]
    return {name: recast(name, tensors[name], dtype, progress) for name in kept}


def recast_modules(
    model: SentenceModel, dtype: ElementType | None, progress: ProgressBar
) -> SentenceModel:
    """Convert the weights of the modules after the encoder to a dtype."""
    modules: list[Module] = []
    for number, module in enumerate(model.modules, start=1):
        if isinstance(module, Dense):
            weight = recast(f"weight of module {number}", module.weight, dtype, progress)
            bias = module.bias and recast(f"bias of module {number}", module.bias, dtype, progress)
            module = replace(module, weight=weight, bias=bias)
        modules.append(module)
    return replace(model, modules=tuple(modules))


def recast(
    name: str, tensor: LazyTensor, dtype: ElementType | None, progress: ProgressBar
) -> LazyTensor:
    """Return a lazy tensor that is checked and converted to a dtype when it is read."""

    def read_stored() -> Array:
        stored = tensor.read_stored()
        values = widen(stored, tensor.dtype)
        if not is_finite(values):
            raise CheckpointError(f"{name} has NaN or infinity; nothing was written")
        progress.advance(tensor.nbytes)
        if dtype is None or dtype is tensor.dtype:
            return stored
        recast = narrow(values, dtype)
        if not is_finite(widen(recast, dtype)):
            raise CheckpointError(
                f"{name} has values up to {np.abs(values).max():.4g}, and {dtype.value} holds at"
                f" most {dtype.largest:.4g}; take float32 or bfloat16. Nothing was written"
            )
        return recast

    return replace(tensor, dtype=dtype or tensor.dtype, read_stored=read_stored)


@dataclass(frozen=True, kw_only=True)
class WrittenFolder:
    """A model's folder that a command wrote."""

    folder: Path
    notes: tuple[str, ...]  # further remarks for the user
    files: dict[str, FileRecord]  # by name

    @property
    def size_bytes(self) -> int:
        """The total size of all files."""
        return sum(record.size_bytes for record in self.files.values())


@dataclass(frozen=True, kw_only=True)
class ConvertResult(WrittenFolder):
    """The result of a conversion."""

    format: str  # of the source, a key of `FORMATS`
    architecture: str  # the model's class
    heads: tuple[str, ...]  # found and kept
    num_parameters: int  # tied parameters count once
    dtypes: dict[str, int]  # number of written tensors by dtype
    dropped: tuple[str, ...]  # tensors of the source that are copies or not weights


def convert(
    source: str | Path,
    output: Path,
    settings: ConvertSettings = ConvertSettings(),  # noqa: B008
    *,
    revision: str | None = None,
) -> ConvertResult:
    """Convert a checkpoint into a new folder, atomically; only one tensor at a time is in memory.

    A `CheckpointError` says that config and tensors don't match, need features that bertkit's BERT
    lacks, aren't finite, or are too large for the dtype.
    """
    with open_output(output, "converting into", inputs=[source], check=check_output) as place:
        return _convert(OpenModel.open(source, revision=revision), place, settings)


def _convert(opened: OpenModel, output: Path, settings: ConvertSettings) -> ConvertResult:
    """Convert into a folder that the caller has locked."""
    dtype = None if settings.dtype is None else ElementType(settings.dtype)
    total = sum(tensor.nbytes for tensor in opened.checkpoint.tensors.values())
    with show_progress("Converting", total, is_bytes=True) as progress:
        weights = convert_weights(opened, dtype, progress)
        modules: SentenceModel | None
        if opened.sentences is not None:
            modules = recast_modules(opened.sentences, dtype, progress)
        else:
            length = opened.model_max_length or opened.config.max_length
            pairs = requires_pairs(opened.folder)
            modules = describe_modules(opened.config, weights, length, reads_pairs=pairs)
        with durable_folder(output) as folder:
            sizes: Counter[ElementType] = Counter()
            for tensor in weights.values():
                sizes[tensor.dtype] += tensor.nbytes
            ((most, _),) = sizes.most_common(1)  # the dtype of most of the weights
            config = describe_config(opened.config.to_dict(), opened.architecture, most)
            stored = store_head(config, weights)
            files = write_huggingface(folder, config, stored, shard_bytes=settings.shard_bytes)
            companions, notes = write_companions(opened, folder, modules)
            check_output(output)  # again, because files may have appeared meanwhile
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    dtypes = [tensor.dtype.value for tensor in weights.values()]
    return ConvertResult(
        folder=output,
        format=opened.checkpoint.format,
        architecture=opened.family.their_class(opened.architecture),
        heads=opened.heads,
        num_parameters=sum(count_parameters(shapes, opened.family.names).values()),
        dtypes={name: dtypes.count(name) for name in sorted(set(dtypes))},
        dropped=tuple(sorted(opened.checkpoint.tensors.keys() - weights.keys())),
        notes=notes,
        files=files | companions,
    )


def check_output(output: Path) -> None:
    """Raise SettingsError if the output folder isn't empty."""
    if names := list_names(output):
        raise SettingsError(f"{output} isn't empty ({min(names)} is there); name a new folder")
