"""Reading and writing a tokenizer's files under Hugging Face's names; files are untrusted.

`vocab.txt` has one entry per line, `tokenizer_config.json` the switches, `tokenizer.json` both in
the format of the `tokenizers` library. `tokenizer_manifest.json` is bertkit's own: the checksums of
the three. If it exists, they are verified before they are read; other tools' folders lack it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import JsonValue

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord, verify_file
from bertkit.base.errors import DamagedFileError, InputError, MissingFileError, storage_errors
from bertkit.base.files import make_folder, read_text, write_file
from bertkit.base.json_files import read_json, write_json
from bertkit.base.members import find_member, has_member
from bertkit.tokenization.definition import Definition
from bertkit.tokenization.names import (
    ADDED_FILE,
    CONFIG_FILE,
    ENGINE_FILE,
    MANIFEST_FILE,
    TOKENIZER_FILES,
    VOCABULARY_FILE,
    Object,
)
from bertkit.tokenization.tokenizer_json import check_added, read_definition
from bertkit.tokenization.vocabulary import MAX_FILE_BYTES, read_lines, read_vocabulary
from bertkit.tokenization.word_piece import (
    config_content,
    engine_json,
    guess_switches,
    read_switches,
)

# What other tokenizers consist of that come without a tokenizer.json.
FILES_OF_OTHERS = ("sentencepiece.bpe.model", "spiece.model", "vocab.json", "merges.txt")
MAX_LENGTH_KEY = "model_max_length"
# transformers' classes that are exactly BERT's WordPiece; the Japanese ones first split words.
CLASSES = tuple(
    f"{model}Tokenizer{suffix}"
    for model in ("Bert", "DistilBert", "Electra")
    for suffix in ("", "Fast")
)

MAX_CONFIG_BYTES = 1 << 20
MAX_MANIFEST_BYTES = 1 << 20  # it needs 25 bytes per mebibyte of the files


class TokenizerManifest(ChecksummedModel):
    """Sizes and checksums of a tokenizer's files at the time they were written."""

    description: ClassVar[str] = "a tokenizer's manifest"
    limit_bytes: ClassVar[int] = MAX_MANIFEST_BYTES

    format_version: Literal[1] = 1
    files: dict[str, FileRecord]


def read_folder(path: Path) -> Definition:
    """Read a tokenizer from a folder, or from a `vocab.txt` alone.

    Where a folder has `vocab.txt` and `tokenizer.json`, they must agree. Each switch of a WordPiece
    comes from `tokenizer_config.json`, else from `tokenizer.json`, else it is guessed from the
    entries.
    """
    with storage_errors(path, "read"):
        if path.is_file():
            verify_files(path.parent, [path.name])
            entries = read_vocabulary(path)
            return Definition.of_bert(entries, guess_switches(entries))
        for name in (*TOKENIZER_FILES, ADDED_FILE, MANIFEST_FILE):
            if has_member(path, name):
                find_member(path, name)
        verify_files(path, TOKENIZER_FILES)
        config = read_object(path / CONFIG_FILE) if (path / CONFIG_FILE).is_file() else {}
        if (path / ENGINE_FILE).is_file():
            definition = _read_engine(path, config)
        else:
            definition = _read_vocabulary(path, config)
    check_listed(path, config, definition)
    return definition


def _read_vocabulary(folder: Path, config: Object) -> Definition:
    """Read a folder without `tokenizer.json`, as google's are."""
    path = folder / VOCABULARY_FILE
    if not path.is_file():
        found = [name for name in FILES_OF_OTHERS if has_member(folder, name)]
        if found:
            raise InputError(
                f"{folder} has {' and '.join(found)} alone, from which tokenizer.json must be made"
                f" once: transformers.AutoTokenizer.from_pretrained({str(folder)!r})"
                f".save_pretrained({str(folder)!r})"
            )
        raise MissingFileError(
            f"{folder} has neither {VOCABULARY_FILE} nor {ENGINE_FILE}; where a model of the Hub"
            " has other files of a tokenizer, transformers.AutoTokenizer.from_pretrained(its id)"
            ".save_pretrained(a folder) makes the latter"
        )
    vocabulary = read_vocabulary(path)
    kind = config.get("tokenizer_class")
    if not (kind is None or kind in CLASSES):
        raise InputError(
            f"{folder / CONFIG_FILE}: tokenizer_class must be {CLASSES[0]!r}, got {kind!r:.80}, and"
            f" there is no {ENGINE_FILE} that defines it"
        )
    return Definition.of_bert(vocabulary, read_switches(folder, {}, config, vocabulary))


def _read_engine(folder: Path, config: Object) -> Definition:
    """Read a folder with `tokenizer.json`."""
    path, lines = folder / ENGINE_FILE, folder / VOCABULARY_FILE
    text = read_text(path, limit_bytes=MAX_FILE_BYTES)
    definition = read_definition(text, config, path)
    is_listed = definition.kind == "WordPiece" and lines.is_file()
    if is_listed and read_lines(lines) != [*definition.vocabulary]:
        raise InputError(f"{lines} and {ENGINE_FILE} have different entries; remove the wrong file")
    return definition


def check_listed(folder: Path, config: Object, definition: Definition) -> None:
    """Reject tokens that files list as added and that aren't entries, or that would be split."""
    listed = list[tuple[Path, JsonValue, JsonValue]]()  # file, token, id: a string if it was a key
    path, by_id = folder / CONFIG_FILE, config.get("added_tokens_decoder") or {}
    for index, token in by_id.items() if isinstance(by_id, dict) else [("", None)]:
        if not isinstance(token, dict):
            raise InputError(f"{path}: added_tokens_decoder must map ids to objects")
        listed.append((path, token.get("content"), index))
    if (path := folder / ADDED_FILE).is_file():
        listed += [(path, *pair) for pair in read_object(path).items()]
    known = definition.controls if definition.kind == "WordPiece" else None
    for path, content, entry in listed:
        check_added(str(path), content, entry, definition.ids, known)


def verify_files(folder: Path, names: Sequence[str]) -> None:
    """Verify files against the folder's manifest, if it has one that lists them."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        return
    try:
        records = TokenizerManifest.load(path).files
        for name in names:
            if name in records:
                verify_file(folder / name, records[name])
    except (MissingFileError, DamagedFileError) as error:
        advice = f"if the change is intended, remove {MANIFEST_FILE}"
        raise type(error)(f"{error}; {advice}") from None


def read_object(path: Path) -> Object:
    """Read a small JSON file that must hold an object."""
    content = read_json(path, limit_bytes=MAX_CONFIG_BYTES)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content


def read_max_length(folder: Path) -> int | None:
    """Return the folder's `model_max_length`, or None if it has none."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        return None
    length = read_object(path).get(MAX_LENGTH_KEY)
    return length if type(length) is int and length > 0 else None


def write_folder(
    folder: Path, definition: Definition, *, max_length: int | None = None
) -> dict[str, FileRecord]:
    """Write a tokenizer's files and their manifest, and return the record of each.

    A `tokenizer.json` that was read is written as it was; BERT's is made of its entries. The
    manifest is written last, so a folder with only some files replaced fails verification. Other
    tools truncate at `max_length` tokens.
    """
    make_folder(folder)
    vocabulary, settings = definition.vocabulary, definition.settings
    text = definition.source or engine_json(vocabulary, settings)
    config = dict(definition.config or {}) if definition.source else config_content(settings)
    if max_length is not None:
        config[MAX_LENGTH_KEY] = max_length
    files = {}
    if definition.kind == "WordPiece":
        lines = "".join(f"{token}\n" for token in vocabulary)
        files[VOCABULARY_FILE] = write_file(folder / VOCABULARY_FILE, lines.encode())
    files[ENGINE_FILE] = write_file(folder / ENGINE_FILE, text.encode())
    files[CONFIG_FILE] = write_json(folder / CONFIG_FILE, config)
    manifest = TokenizerManifest(files=files)
    return {**files, MANIFEST_FILE: manifest.save(folder / MANIFEST_FILE)}
