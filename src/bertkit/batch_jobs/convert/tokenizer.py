"""Write the tokenizer, sentence-embedding modules and other small files of a new model folder."""

from pathlib import Path

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, InputError, UnsafeFileError, storage_errors
from bertkit.base.files import check_is_file, write_file
from bertkit.base.members import find_member, has_member
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.checkpoints.sentence_transformers.folder import (
    SentenceModel,
    write_sentence_model,
)
from bertkit.models.bert.config import BertConfig
from bertkit.tokenization.additions import ADDED_FILE
from bertkit.tokenization.folder import (
    CONFIG_FILE,
    ENGINE_FILE,
    VOCABULARY_FILE,
    read_folder,
    read_max_length,
    write_folder,
)

# The files of a tokenizer that isn't BERT's; they are copied unchanged.
FOREIGN_FILES = (VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE, ADDED_FILE)
# Other files to copy: documentation, a fine-tuned model's task, the names of the special tokens.
OTHER_FILES = ("README.md", "LICENSE", "LICENSE.txt", TASK_FILE, "special_tokens_map.json")
MAX_COPIED_BYTES = 64 << 20


Written = tuple[dict[str, FileRecord], tuple[str, ...]]


def write_companions(
    path: Path, encoder: Path, folder: Path, config: BertConfig, sentences: SentenceModel | None
) -> Written:
    """Write everything beside config and weights; return the files by name, and remarks.

    Args:
        path: the model.
        encoder: the folder in it that has the encoder and the tokenizer.
        folder: the destination.
        config: the model's config.
        sentences: its sentence-embedding modules, if it has any.
    """
    files: dict[str, FileRecord] = {}
    if sentences is not None:
        files |= write_sentence_model(folder, sentences) | copy_files(path, folder)
    written, notes = write_tokenizer(encoder, folder, config)
    return files | written | copy_files(encoder, folder), notes


def write_tokenizer(source: Path, folder: Path, config: BertConfig) -> Written:
    """Rewrite the tokenizer of a model folder, or copy one that isn't BERT's."""
    if not any(has_member(source, name) for name in (VOCABULARY_FILE, ENGINE_FILE)):
        note = f"there is no tokenizer: {source} has neither {VOCABULARY_FILE} nor {ENGINE_FILE}"
        return {}, (note,)
    try:
        vocabulary, settings = read_folder(source)
    except InputError as error:
        note = f"the tokenizer isn't a BERT tokenizer and was copied unchanged ({error})"
        return copy_files(source, folder, FOREIGN_FILES), (note,)
    if len(vocabulary) > config.vocab_size:
        raise CheckpointError(
            f"{source}: the vocabulary has {len(vocabulary):,} entries and the model"
            f" {config.vocab_size:,}; the tokenizer doesn't belong to this model"
        )
    max_length = read_max_length(source) or config.max_position_embeddings
    return write_folder(folder, vocabulary, settings, max_length=max_length), ()


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
