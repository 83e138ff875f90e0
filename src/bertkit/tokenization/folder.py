"""Reading and writing a tokenizer's files under Hugging Face's names; files are untrusted.

`vocab.txt` has one entry per line, `tokenizer_config.json` the switches, `tokenizer.json` both in
the format of the `tokenizers` library. `tokenizer_manifest.json` is bertkit's own: the checksums of
the three. If it exists, they are verified before they are read; other tools' folders lack it.
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import JsonValue
from tokenizers import AddedToken, processors

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord, verify_file
from bertkit.base.errors import DamagedFileError, InputError, MissingFileError, storage_errors
from bertkit.base.files import make_folder, read_text, write_file
from bertkit.base.json_files import read_json, write_json
from bertkit.base.members import find_member, has_member
from bertkit.tokenization.engine import (
    CLS,
    CONTINUATION,
    MASK,
    PAD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    build_engine,
)
from bertkit.tokenization.settings import (
    CASED,
    MAX_ENTRIES,
    MAX_WORD_CHARS,
    UNCASED,
    TokenizerSettings,
)

Object = dict[str, JsonValue]  # the content of a file

ADDED_FILE = "added_tokens.json"
# transformers' classes that are exactly BERT's WordPiece; the Japanese ones first split words.
CLASSES = tuple(
    f"{model}Tokenizer{suffix}"
    for model in ("Bert", "DistilBert", "Electra")
    for suffix in ("", "Fast")
)


def check_added(folder: Path, engine: Object, config: Object, vocabulary: Sequence[str]) -> None:
    """Reject added tokens other than the special ones, because bertkit would split them."""
    added: list[tuple[Path, JsonValue, JsonValue]] = []  # file, token, id: a string if it was a key
    path, listed = folder / ENGINE_FILE, engine.get("added_tokens") or []
    for token in listed if isinstance(listed, list) else [None]:
        if not isinstance(token, dict):
            raise InputError(f"{path}: added_tokens must be a list of objects")
        added.append((path, token.get("content"), token.get("id")))
    path, by_id = folder / CONFIG_FILE, config.get("added_tokens_decoder") or {}
    for index, token in by_id.items() if isinstance(by_id, dict) else [("", None)]:
        if not isinstance(token, dict):
            raise InputError(f"{path}: added_tokens_decoder must map ids to objects")
        added.append((path, token.get("content"), index))
    if (path := folder / ADDED_FILE).is_file():
        added += [(path, *pair) for pair in read_object(path, MAX_CONFIG_BYTES).items()]
    ids = {token: str(index) for index, token in enumerate(vocabulary)}
    for path, content, entry in added:
        if ids.get(str(content)) != str(entry):
            raise InputError(
                f"{path}: the added token {content!r:.80} isn't entry {entry!r:.80} of the"
                " vocabulary; bertkit doesn't support tokens outside of it"
            )
        if content not in SPECIAL_TOKENS:
            raise InputError(
                f"{path}: the added token {content!r:.80} isn't one of BERT's special tokens, and"
                " bertkit would split it into pieces; remove it there if that is intended"
            )


VOCABULARY_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
ENGINE_FILE = "tokenizer.json"
MANIFEST_FILE = "tokenizer_manifest.json"
TOKENIZER_FILES = (VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE)
MAX_LENGTH_KEY = "model_max_length"

# In memory a character may take four bytes, twice: in the text and in what is parsed from it.
MAX_FILE_BYTES = 32 << 20  # a vocabulary of 500,000 entries has 15 million
MAX_CONFIG_BYTES = 1 << 20
MAX_MANIFEST_BYTES = 1 << 20  # it needs 25 bytes per mebibyte of the files
MAX_ENTRY_CHARS = 1000

# The values that `tokenizer.json` must have; the rest are switches, entries or irrelevant here.
ALGORITHM: dict[str, dict[str, str | int | bool]] = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": UNK,
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": MAX_WORD_CHARS,
    },
}
# Models that have them, by their `type` in `tokenizer.json`.
OTHER_ALGORITHMS = {
    "BPE": "RoBERTa, ModernBERT and GPT",
    "Unigram": "XLM-RoBERTa, ALBERT and T5",
    "WordLevel": "models without pieces of words",
}
DEFAULT_VALUES = {("model", "type"): "WordPiece"}  # files of 2020 lack the key; the others imply it
# A quarter of a cased vocabulary's entries have capitals. Uncased ones may have a few that people
# added: copies of google's Chinese vocabulary exist with the letters A to Z.
CASED_SHARE = 0.01


class TokenizerManifest(ChecksummedModel):
    """Sizes and checksums of a tokenizer's files at the time they were written."""

    description: ClassVar[str] = "a tokenizer's manifest"
    limit_bytes: ClassVar[int] = MAX_MANIFEST_BYTES

    format_version: Literal[1] = 1
    files: dict[str, FileRecord]


def check_vocabulary(vocabulary: Sequence[str], source: str) -> None:
    """Reject an invalid vocabulary; `source` names it in the message."""
    if not vocabulary:
        raise InputError(f"{source} is empty; expected one entry per line, [PAD] first")
    check_size(len(vocabulary), source)
    seen: dict[str, int] = {}
    for index, token in enumerate(vocabulary):
        if problem := _entry_problem(token):
            raise InputError(f"{source}: entry {index} is {problem}")
        if token in seen:
            raise InputError(
                f"{source} has {token!r} twice, as entries {seen[token]} and {index}; remove one"
            )
        seen[token] = index
    missing = [token for token in SPECIAL_TOKENS if token not in seen]
    if missing:
        raise InputError(f"{source} lacks {', '.join(missing)}; is it a BERT vocabulary?")
    if vocabulary[0] != PAD:
        raise InputError(
            f"{source} begins with {vocabulary[0]!r} and has {PAD} as entry {seen[PAD]};"
            f" {PAD} must be entry 0"
        )


def check_size(num_entries: int, source: str) -> None:
    """Reject more entries than any vocabulary has, before they take memory."""
    if num_entries > MAX_ENTRIES:
        raise InputError(
            f"{source} has {num_entries:,} entries; at most {MAX_ENTRIES:,} are allowed"
        )


def read_folder(path: Path) -> tuple[list[str], TokenizerSettings]:
    """Read a vocabulary and its switches from a folder, or from a `vocab.txt` alone.

    The vocabulary comes from `vocab.txt` or `tokenizer.json`, which must agree. Each switch comes
    from `tokenizer_config.json`, else from `tokenizer.json`, else it is guessed from the entries.
    """
    vocabulary_path, engine_path = path / VOCABULARY_FILE, path / ENGINE_FILE
    with storage_errors(path, "read"):
        if path.is_file():
            verify_files(path.parent, [path.name])
            entries = read_vocabulary(path)
            return entries, guess_switches(entries)
        for name in (VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE, ADDED_FILE, MANIFEST_FILE):
            if has_member(path, name):
                find_member(path, name)
        verify_files(path, [VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE])
        vocabulary = read_vocabulary(vocabulary_path) if vocabulary_path.is_file() else None
        engine = read_object(engine_path, MAX_FILE_BYTES) if engine_path.is_file() else None
    if engine is not None:
        entries = engine_vocabulary(engine, engine_path)
        if vocabulary not in (None, entries):
            raise InputError(
                f"{vocabulary_path} and {ENGINE_FILE} have different entries; remove the wrong file"
            )
        vocabulary = entries
    if vocabulary is None:
        raise MissingFileError(f"{path} has neither {VOCABULARY_FILE} nor {ENGINE_FILE}")
    config_path = path / CONFIG_FILE
    config = read_object(config_path, MAX_CONFIG_BYTES) if config_path.is_file() else {}
    kind = config.get("tokenizer_class")
    if engine is None and not (kind is None or kind in CLASSES):
        raise InputError(
            f"{config_path}: tokenizer_class must be {CLASSES[0]!r}, got {kind!r:.80}, and there"
            " is no tokenizer.json that defines it"
        )
    check_added(path, engine or {}, config, vocabulary)
    return vocabulary, read_switches(path, engine or {}, config, vocabulary)


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


def read_vocabulary(path: Path) -> list[str]:
    """Read the entries of a `vocab.txt`, one per line."""
    # Not splitlines: entries may be characters that it treats as line ends.
    text = read_text(path, limit_bytes=MAX_FILE_BYTES)
    check_size(text.count("\n"), str(path))
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    vocabulary = [line.removesuffix("\r") for line in lines]
    check_vocabulary(vocabulary, str(path))
    return vocabulary


def read_object(path: Path, limit_bytes: int) -> Object:
    """Read a JSON file that must hold an object."""
    content = read_json(path, limit_bytes=limit_bytes)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content


def engine_vocabulary(engine: Object, path: Path) -> list[str]:
    """Return the entries of a `tokenizer.json`, in the order of their ids."""
    model = engine.get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    if isinstance(kind, str) and kind in OTHER_ALGORITHMS:
        raise InputError(
            f"{path} is a {kind} tokenizer, as {OTHER_ALGORITHMS[kind]} have, and BERT's is"
            " WordPiece; use google-bert/bert-base-uncased for English, or for other languages"
            " google-bert/bert-base-multilingual-cased, or to embed texts"
            " sentence-transformers/LaBSE"
        )
    for name, expected in ALGORITHM.items():
        part = engine.get(name)
        if not isinstance(part, dict):
            raise InputError(f"{path} has no object named {name}")
        for key, value in expected.items():
            if part.get(key, DEFAULT_VALUES.get((name, key))) != value:
                found = f"{part.get(key)!r:.80}"
                raise InputError(f"{path}: {name}.{key} must be {value!r}, got {found}")
    listed = model.get("vocab") if isinstance(model, dict) else None
    entries = listed if isinstance(listed, dict) else {}
    pairs = [(index, token) for token, index in entries.items() if type(index) is int]
    if not isinstance(listed, dict) or len(pairs) < len(listed):
        raise InputError(f"{path}: model.vocab must map each entry to its id")
    pairs.sort(key=itemgetter(0))
    vocabulary, ids = [token for _, token in pairs], [index for index, _ in pairs]
    if ids[:1] != [0] or any(after != before + 1 for before, after in pairwise(ids)):
        raise InputError(f"{path}: the ids of model.vocab must be 0, 1, 2 … without a gap")
    check_vocabulary(vocabulary, str(path))
    return vocabulary


def guess_switches(vocabulary: Sequence[str]) -> TokenizerSettings:
    """Guess the switches of a vocabulary that comes without any, as google's do: cased or uncased.

    It is cased if at least one percent of its entries are words or pieces with capitals and two or
    more letters. Entries such as `[CLS]`, `[unused1]` and `<S>` aren't words.
    """
    words = [token.removeprefix(CONTINUATION) for token in vocabulary]
    num_capitalized = sum(
        len(word) > 1 and word.isalpha() and word != word.lower() for word in words
    )
    return CASED if num_capitalized >= CASED_SHARE * len(words) else UNCASED


def read_switches(
    folder: Path, engine: Object, config: Object, vocabulary: Sequence[str]
) -> TokenizerSettings:
    """Read the switches from `tokenizer_config.json`, else `tokenizer.json`, else guess them.

    Where `strip_accents` isn't set, it follows lowercasing, as in the original BERT.
    """
    normalizer = engine.get("normalizer")
    guessed = guess_switches(vocabulary)

    def read(config_key: str, engine_key: str, default: bool) -> bool:
        value, source = config.get(config_key), CONFIG_FILE
        if value is None and isinstance(normalizer, dict):
            value, source = normalizer.get(engine_key), ENGINE_FILE
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(
                f"{folder / source}: {config_key} must be true or false, got {value!r:.80}"
            )
        return value

    lowercase = read("do_lower_case", "lowercase", guessed.lowercase)
    return TokenizerSettings(
        lowercase=lowercase,
        strip_accents=read("strip_accents", "strip_accents", lowercase),
        split_cjk=read("tokenize_chinese_chars", "handle_chinese_chars", guessed.split_cjk),
    )


def read_max_length(folder: Path) -> int | None:
    """Return the folder's `model_max_length`, or None if it has none."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        return None
    length = read_object(path, MAX_CONFIG_BYTES).get(MAX_LENGTH_KEY)
    return length if type(length) is int and length > 0 else None


def write_folder(
    folder: Path,
    vocabulary: Sequence[str],
    settings: TokenizerSettings,
    *,
    max_length: int | None = None,
) -> dict[str, FileRecord]:
    """Write the three files and their manifest, and return the record of each.

    The manifest is written last, so a folder with only some files replaced fails verification.
    Other tools truncate at `max_length` tokens.
    """
    make_folder(folder)
    lines = "".join(f"{token}\n" for token in vocabulary)
    config = config_content(settings)
    if max_length is not None:
        config[MAX_LENGTH_KEY] = max_length
    files = {
        VOCABULARY_FILE: write_file(folder / VOCABULARY_FILE, lines.encode()),
        ENGINE_FILE: write_file(folder / ENGINE_FILE, engine_json(vocabulary, settings).encode()),
        CONFIG_FILE: write_json(folder / CONFIG_FILE, config),
    }
    manifest = TokenizerManifest(files=files)
    return {**files, MANIFEST_FILE: manifest.save(folder / MANIFEST_FILE)}


def engine_json(vocabulary: Sequence[str], settings: TokenizerSettings) -> str:
    """Return `tokenizer.json`: the engine, with the post-processor that adds [CLS] and [SEP]."""
    engine = build_engine(vocabulary, settings)
    engine.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS]
    )
    engine.post_processor = processors.BertProcessing(
        (SEP, vocabulary.index(SEP)), (CLS, vocabulary.index(CLS))
    )
    return engine.to_str(pretty=True) + "\n"


def config_content(settings: TokenizerSettings) -> Object:
    """Return `tokenizer_config.json`: the switches under transformers' names."""
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": settings.lowercase,
        "strip_accents": settings.strip_accents,
        "tokenize_chinese_chars": settings.split_cjk,
        "pad_token": PAD,
        "unk_token": UNK,
        "cls_token": CLS,
        "sep_token": SEP,
        "mask_token": MASK,
    }


def _entry_problem(token: str) -> str | None:
    if not token:
        return "empty"
    if len(token) > MAX_ENTRY_CHARS:
        return f"{len(token):,} characters long; at most {MAX_ENTRY_CHARS:,} are allowed"
    if "\n" in token or "\r" in token:
        return f"{token!r}, which contains a line end"
    if not token.isascii() and token != token.encode("utf-8", "ignore").decode():
        return f"{token!r}, which contains half a character"
    return None
