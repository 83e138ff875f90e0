"""Token shards: three NumPy files each, mapped into memory and checked as they are touched.

`*.tokens.npy` holds the token ids of all sentences end to end, in the smallest unsigned type that
holds the vocabulary. `*.sentences.npy` says where each sentence begins among the tokens, and
`*.documents.npy` where each document begins among the sentences; both end with the total.
"""

import hashlib
import io
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.base.files import (
    CHUNK_BYTES,
    FileRecord,
    damaged_chunk,
    read_json,
    verify_file,
    verify_size,
    write_file,
)
from bertkit.tokenization.tokenizer import Tokenizer

MANIFEST = "manifest.json"
PLAN = "plan.json"
TOKEN_COUNTS = "token_counts.npy"  # noqa: S105 - not a password
TOKENIZER_FOLDER = "tokenizer"
SHARDS_FOLDER = "parts"
PARTS = ("tokens", "sentences", "documents")
MAX_MAPPED_FILES = 256

Split = Literal["train", "held-out"]


class SplitCounts(BaseModel):
    """How much of the corpus one split is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: int = 0
    sentences: int = 0
    tokens: int = 0

    def __add__(self, other: "SplitCounts") -> "SplitCounts":
        return SplitCounts(
            documents=self.documents + other.documents,
            sentences=self.sentences + other.sentences,
            tokens=self.tokens + other.tokens,
        )


class ShardRecord(BaseModel):
    """One shard: its name, what is in it, and its three files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    split: Split
    counts: SplitCounts
    files: dict[str, FileRecord]


class ShardsManifest(BaseModel):
    """What `prepare` wrote; the same for the same input, settings and tokenizer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: Literal[1] = 1
    vocab_size: int
    tokenizer_fingerprint: str
    raw_bytes: int
    train: SplitCounts
    held_out: SplitCounts
    settings: dict[str, Any]
    report: dict[str, Any]
    token_counts: FileRecord
    shards: list[ShardRecord]


class MappedArray:
    """A one-dimensional `.npy` file, mapped; each mebibyte is verified when first touched.

    Args:
        path: the file.
        record: what it was when it was written.

    Raises:
        MissingFileError: it is gone.
        DamagedFileError: its length is wrong.
    """

    def __init__(self, path: Path, record: FileRecord) -> None:
        verify_size(path, record)
        self.path = path
        self._record = record
        self._is_verified = np.zeros(len(record.chunk_crc32), dtype=np.bool_)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[np.unsignedinteger]:
        """A stretch of the array, verified; all of it by default.

        Raises:
            DamagedFileError: a mebibyte that it touches was altered, or the file isn't of its kind.
        """
        mapped, data_start = _map_array(self)
        stop = len(mapped) if stop is None else stop
        width = mapped.itemsize
        self.verify(data_start + start * width, data_start + stop * width)
        return mapped[start:stop]

    def verify(self, start_byte: int, stop_byte: int) -> None:
        """Check the mebibytes between two places of the file, unless that was done.

        Raises:
            DamagedFileError: one was altered.
        """
        first, last = start_byte // CHUNK_BYTES, -(-stop_byte // CHUNK_BYTES)
        if self._is_verified[first:last].all():
            return
        with self.path.open("rb") as stream:
            stream.seek(first * CHUNK_BYTES)
            for index in range(first, last):
                if zlib.crc32(stream.read(CHUNK_BYTES)) != self._record.chunk_crc32[index]:
                    raise damaged_chunk(self.path, index)
                self._is_verified[index] = True


@lru_cache(maxsize=MAX_MAPPED_FILES)
def _map_array(file: MappedArray) -> tuple[NDArray[np.unsignedinteger], int]:
    """A file's array, and the byte at which it begins; few are mapped at a time.

    A map holds a file descriptor, and there are usually no more than a thousand.
    """
    file.verify(0, min(1, file.path.stat().st_size))
    try:
        mapped = np.load(file.path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DamagedFileError(f"{file.path} isn't a NumPy file: {error}") from None
    if mapped.ndim != 1 or mapped.dtype.kind != "u":
        raise DamagedFileError(f"{file.path} must hold one row of unsigned numbers")
    return mapped.view(np.ndarray), mapped.offset


@dataclass(frozen=True)
class Shard:
    """A stretch of the corpus: whole documents."""

    record: ShardRecord
    _files: dict[str, MappedArray]

    @classmethod
    def open(cls, folder: Path, record: ShardRecord) -> Self:
        """Find a shard's files; they are mapped when they are first read.

        Raises:
            MissingFileError: one is gone.
            DamagedFileError: one was cut short or extended.
        """
        files = {
            part: MappedArray(shard_path(folder, record.name, part), record.files[part])
            for part in PARTS
        }
        return cls(record, files)

    @property
    def name(self) -> str:
        """As in its files' names."""
        return self.record.name

    @property
    def num_tokens(self) -> int:
        """Tokens, without special ones."""
        return self.record.counts.tokens

    @property
    def num_sentences(self) -> int:
        """Sentences."""
        return self.record.counts.sentences

    @property
    def num_documents(self) -> int:
        """Documents."""
        return self.record.counts.documents

    def tokens(self, start: int, stop: int) -> NDArray[np.unsignedinteger]:
        """Token ids from a place to a place.

        Raises:
            DamagedFileError: a mebibyte that they touch was altered.
        """
        return self._files["tokens"].read(start, stop)

    @property
    def sentence_offsets(self) -> NDArray[np.unsignedinteger]:
        """Where each sentence begins among the tokens, and the end; shape [sentences + 1].

        Raises:
            DamagedFileError: the file was altered.
        """
        return self._files["sentences"].read()

    @property
    def document_offsets(self) -> NDArray[np.unsignedinteger]:
        """Where each document begins among the sentences, and the end; shape [documents + 1].

        Raises:
            DamagedFileError: the file was altered.
        """
        return self._files["documents"].read()


@dataclass(frozen=True)
class ShardSet:
    """All that `prepare` wrote.

    Attributes:
        folder: where it is.
        manifest: what it is.
        train: shards to learn from.
        held_out: shards to evaluate on; none of their document groups is in `train`.
        token_counts: `[vocabulary]`, how often each token is in `train`.
    """

    folder: Path
    manifest: ShardsManifest
    train: tuple[Shard, ...]
    held_out: tuple[Shard, ...]
    token_counts: NDArray[np.unsignedinteger]

    @classmethod
    def open(cls, folder: Path, *, verify: Literal["touched", "all"] = "touched") -> Self:
        """Open a folder of shards.

        Args:
            folder: what `prepare` wrote.
            verify: "touched" checks each mebibyte when it is first read, "all" everything now, the
                copy of the tokenizer too.

        Raises:
            MissingFileError: the folder, its manifest or a shard isn't there.
            DamagedFileError: a file was cut short, altered or swapped.
        """
        manifest = read_manifest(folder)
        if verify == "all":
            for record in manifest.shards:
                for part, file in record.files.items():
                    verify_file(shard_path(folder, record.name, part), file)
        shards = {
            record.name: (record.split, Shard.open(folder, record)) for record in manifest.shards
        }
        counts = MappedArray(folder / TOKEN_COUNTS, manifest.token_counts)
        shard_set = cls(
            folder=folder,
            manifest=manifest,
            train=tuple(shard for split, shard in shards.values() if split == "train"),
            held_out=tuple(shard for split, shard in shards.values() if split == "held-out"),
            token_counts=np.array(counts.read()),
        )
        if verify == "all":
            shard_set.load_tokenizer()
        return shard_set

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the manifest: equal where all shards are."""
        return hashlib.sha256(self.manifest.model_dump_json().encode()).hexdigest()

    def load_tokenizer(self) -> Tokenizer:
        """The tokenizer that cut the text, from its copy among the shards.

        Raises:
            MissingFileError: the copy is gone.
            DamagedFileError: the copy was altered, or can't be read.
            InputError: the copy was altered, and isn't a tokenizer any more.
        """
        path = self.folder / TOKENIZER_FOLDER
        tokenizer = Tokenizer.load(path)
        if tokenizer.fingerprint != self.manifest.tokenizer_fingerprint:
            raise DamagedFileError(
                f"{path} was altered: it isn't the tokenizer that these shards were made with;"
                " restore it"
            )
        return tokenizer


def read_manifest(folder: Path) -> ShardsManifest:
    """What `prepare` wrote in a folder.

    Raises:
        MissingFileError: there is no manifest, or `prepare` isn't finished.
        DamagedFileError: it can't be read.
    """
    path = folder / MANIFEST
    if not path.is_file():
        what = "is not finished; run the same `bertkit prepare` again"
        if not (folder / PLAN).is_file():
            what = "has no shards; name a folder that `bertkit prepare` wrote"
        raise MissingFileError(f"{folder} {what}")
    try:
        return ShardsManifest.model_validate(read_json(path, limit_bytes=1 << 30))
    except ValidationError as error:
        raise DamagedFileError(f"{path} isn't a manifest of shards: {error}") from None


def shard_path(folder: Path, name: str, part: str) -> Path:
    """One of the files of a shard; `part` is one of `PARTS`."""
    return folder / SHARDS_FOLDER / f"{name}.{part}.npy"


def choose_dtype(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds each id of a vocabulary."""
    return np.dtype(np.min_scalar_type(vocab_size - 1))


def write_array(path: Path, array: NDArray[np.unsignedinteger]) -> FileRecord:
    """Write a `.npy` file durably."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return write_file(path, buffer.getbuffer())
