"""Write the tokenizer and other small files of a converted folder."""

from pathlib import Path
from typing import NamedTuple

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import CheckpointError, InputError, UnsafeFileError, storage_errors
from bertkit.base.files import check_is_file, write_file
from bertkit.base.members import find_member, has_member
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
# Other files to copy: documentation, and the names of the special tokens.
OTHER_FILES = ("README.md", "LICENSE", "LICENSE.txt", "special_tokens_map.json")
MAX_COPIED_BYTES = 64 << 20


class WrittenTokenizer(NamedTuple):
    """The result of writing the tokenizer.

    Attributes:
        files: the written files, by name.
        notes: remarks for the user; empty if nothing is unusual.
    """

    files: dict[str, FileRecord]
    notes: tuple[str, ...]


def write_tokenizer(source: Path, folder: Path, config: BertConfig) -> WrittenTokenizer:
    """Rewrite the tokenizer of a model folder, or copy one that isn't BERT's.

    Args:
        source: the model folder.
        folder: the destination.
        config: the model's config.
    """
    if not any(has_member(source, name) for name in (VOCABULARY_FILE, ENGINE_FILE)):
        note = f"there is no tokenizer: {source} has neither {VOCABULARY_FILE} nor {ENGINE_FILE}"
        return WrittenTokenizer({}, (note,))
    try:
        vocabulary, settings = read_folder(source)
    except InputError as error:
        note = f"the tokenizer isn't a BERT tokenizer and was copied unchanged ({error})"
        return WrittenTokenizer(copy_files(source, folder, FOREIGN_FILES), (note,))
    if len(vocabulary) > config.vocab_size:
        raise CheckpointError(
            f"{source}: the vocabulary has {len(vocabulary):,} entries and the model"
            f" {config.vocab_size:,}; the tokenizer doesn't belong to this model"
        )
    max_length = read_max_length(source) or config.max_position_embeddings
    written = write_folder(folder, vocabulary, settings, max_length=max_length)
    return WrittenTokenizer(written, ())


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
