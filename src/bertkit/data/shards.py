"""Token shards: three memory-mapped NumPy files each, verified as they are read.

`*.tokens.npy` holds the token ids of all sentences end to end, in the smallest unsigned type that
fits the vocabulary. `*.sentences.npy` holds the offset of each sentence in the tokens, and
`*.documents.npy` the offset of each document in the sentences; both end with the total.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    field_validator,
    model_validator,
)

from bertkit.base.addresses import is_remote
from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord, verify_file
from bertkit.base.errors import DamagedFileError, MissingFileError, storage_errors
from bertkit.base.remote import find_info
from bertkit.base.transfers import fetch
from bertkit.data.mapped_array import MappedArray
from bertkit.data.problems import ReadReport, describe_long_words, describe_unknown
from bertkit.tokenization.names import MANIFEST_FILE as TOKENIZER_MANIFEST
from bertkit.tokenization.tokenizer import Tokenizer

MANIFEST = "manifest.json"
PLAN = "plan.json"
TOKEN_COUNTS = "token_counts.npy"  # noqa: S105 - not a password
TOKENIZER_FOLDER = "tokenizer"
SHARDS_FOLDER = "parts"
PARTS = ("tokens", "sentences", "documents")

Split = Literal["train", "held-out"]
LATER_COUNTS = {"characters", "long_word_characters", "unknown_tokens"}  # not in every manifest


class SplitCounts(BaseModel):
    """The size of one split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: NonNegativeInt = 0
    sentences: NonNegativeInt = 0
    tokens: NonNegativeInt = 0

    def __add__(self, other: "SplitCounts") -> "SplitCounts":
        return SplitCounts(
            documents=self.documents + other.documents,
            sentences=self.sentences + other.sentences,
            tokens=self.tokens + other.tokens,
        )


class ShardRecord(BaseModel):
    """One shard: its name, its counts, and its three files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^(train|held-out)-[0-9]+-[0-9]+$")  # becomes part of a path
    split: Split
    counts: SplitCounts
    files: dict[str, FileRecord]

    @field_validator("files")
    @classmethod
    def _check_files(cls, files: dict[str, FileRecord]) -> dict[str, FileRecord]:
        if files.keys() != set(PARTS):
            raise ValueError(f"expected {', '.join(PARTS)}, got {', '.join(files) or 'none'}")
        return files

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if not self.name.startswith(f"{self.split}-"):
            raise ValueError(f"{self.name} can't be of the split {self.split}")
        return self


class ShardsManifest(ChecksummedModel):
    """The manifest that `prepare` writes; determined by input, settings and tokenizer."""

    description: ClassVar[str] = "a manifest of shards"
    limit_bytes: ClassVar[int] = 1 << 30

    format_version: Literal[2] = 2
    vocab_size: PositiveInt
    tokenizer_fingerprint: str
    tokenizer_manifest: FileRecord
    raw_bytes: NonNegativeInt
    train: SplitCounts
    held_out: SplitCounts
    settings: dict[str, JsonValue]
    report: ReadReport
    characters: NonNegativeInt = 0
    long_word_characters: NonNegativeInt = 0  # in words that are [UNK] because they are too long
    unknown_tokens: NonNegativeInt = 0  # of the training tokens, [UNK]
    token_counts: FileRecord
    shards: list[ShardRecord]

    @model_validator(mode="after")
    def _check_shards(self) -> Self:
        names = [shard.name for shard in self.shards]
        if len(set(names)) < len(names):
            raise ValueError("two shards have the same name")
        totals: dict[Split, SplitCounts] = {"train": self.train, "held-out": self.held_out}
        for split, total in totals.items():
            found = sum_counts(self.shards, split)
            if found != total:
                raise ValueError(
                    f"{split} should hold {total.tokens:,} tokens in {total.sentences:,} sentences"
                    f" of {total.documents:,} documents, and its shards hold"
                    f" {found.tokens:,}, {found.sentences:,} and {found.documents:,}"
                )
        return self

    def list_problems(self) -> list[str]:
        """Return a line for each outcome of reading, and for what the vocabulary lacks."""
        return [
            *self.report.summary_lines(),
            *describe_unknown(self.unknown_tokens, self.train.tokens),
            *describe_long_words(self.long_word_characters, self.characters),
        ]


def sum_counts(shards: Iterable[ShardRecord], split: Split) -> SplitCounts:
    """Return the total counts of a split's shards."""
    counts = (shard.counts for shard in shards if shard.split == split)
    return sum(counts, start=SplitCounts())


@dataclass(frozen=True)
class Shard:
    """A part of the corpus, made of whole documents."""

    record: ShardRecord
    _files: dict[str, MappedArray]

    @classmethod
    def open(cls, folder: Path, record: ShardRecord) -> Self:
        """Open a shard's files after checking size and first 4 KiB; they are mapped when read."""
        counts = record.counts
        lengths = (counts.tokens, counts.sentences + 1, counts.documents + 1)
        files = {
            part: MappedArray(shard_path(folder, record.name, part), record.files[part], length)
            for part, length in zip(PARTS, lengths, strict=True)
        }
        for file in files.values():
            file.verify_head()
        return cls(record, files)

    @property
    def name(self) -> str:
        """Name of the shard, as in its files' names."""
        return self.record.name

    @property
    def num_tokens(self) -> int:
        """Number of tokens, without special ones."""
        return self.record.counts.tokens

    @property
    def num_sentences(self) -> int:
        """Number of sentences."""
        return self.record.counts.sentences

    def tokens(self, start: int, stop: int) -> NDArray[np.unsignedinteger]:
        """Return the token ids in a range."""
        return self._files["tokens"].read(start, stop)

    @property
    def sentence_offsets(self) -> NDArray[np.unsignedinteger]:
        """Offset of each sentence in the tokens, plus the total; shape [sentences + 1]."""
        return self._files["sentences"].read()

    @property
    def document_offsets(self) -> NDArray[np.unsignedinteger]:
        """Offset of each document in the sentences, plus the total; shape [documents + 1]."""
        return self._files["documents"].read()


@dataclass(frozen=True)
class ShardSet:
    """A folder of shards that `prepare` wrote.

    Attributes:
        held_out: shards for evaluation; none of their document groups is in `train`, unless the
            report says `cut-documents`: then these are the ends of documents.
    """

    folder: Path
    manifest: ShardsManifest
    train: tuple[Shard, ...]
    held_out: tuple[Shard, ...]
    token_counts: NDArray[np.unsignedinteger]  # `[vocabulary]`, occurrences in `train`

    @classmethod
    def open(cls, folder: Path, *, verify: Literal["touched", "all"] = "touched") -> Self:
        """Open a folder of shards; that of a URL is fetched first.

        Args:
            verify: "touched" checks the first 4 KiB of each file now and each MiB when it is first
                read, "all" checks everything now, including the copy of the tokenizer.
        """
        folder = fetch(folder)
        manifest = read_manifest(folder)
        if verify == "all":
            for record in manifest.shards:
                for part, file in record.files.items():
                    verify_file(shard_path(folder, record.name, part), file)
        shards = [Shard.open(folder, record) for record in manifest.shards]
        token_counts = read_token_counts(folder, manifest)
        shard_set = cls(
            folder=folder,
            manifest=manifest,
            train=tuple(shard for shard in shards if shard.record.split == "train"),
            held_out=tuple(shard for shard in shards if shard.record.split == "held-out"),
            token_counts=token_counts,
        )
        if verify == "all":
            shard_set.load_tokenizer()
        return shard_set

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the manifest: equal if all shards are equal, also of earlier versions."""
        content = self.manifest.model_dump_json(exclude=LATER_COUNTS)
        return hashlib.sha256(content.encode()).hexdigest()

    def load_tokenizer(self) -> Tokenizer:
        """Load the copy of the tokenizer that the shards were made with."""
        path = self.folder / TOKENIZER_FOLDER
        tokenizer = Tokenizer.load(path)
        if tokenizer.fingerprint != self.manifest.tokenizer_fingerprint:
            raise DamagedFileError(
                f"{path} isn't the tokenizer that these shards were made with; restore it"
            )
        verify_file(path / TOKENIZER_MANIFEST, self.manifest.tokenizer_manifest)
        return tokenizer


def read_token_counts(folder: Path, manifest: ShardsManifest) -> NDArray[np.unsignedinteger]:
    """Return the number of occurrences of each token in the training shards; [vocabulary]."""
    path = folder / TOKEN_COUNTS
    counts = np.array(MappedArray(path, manifest.token_counts, manifest.vocab_size).read())
    if counts.sum() != manifest.train.tokens:
        raise DamagedFileError(
            f"{path} counts {counts.sum():,} tokens, and the shards hold"
            f" {manifest.train.tokens:,}; restore it or the manifest"
        )
    return counts


def is_prepared(name: str | Path) -> bool:
    """Whether `prepare` wrote a folder, or has begun to."""
    if is_remote(name):
        return find_info(f"{str(name).rstrip('/')}/{PLAN}") is not None
    return (Path(name) / PLAN).is_file()


def read_manifest(folder: Path) -> ShardsManifest:
    """Read the manifest of a folder that `prepare` wrote."""
    path = folder / MANIFEST
    with storage_errors(path, "read"):
        is_finished, is_started = path.is_file(), (folder / PLAN).is_file()
    if is_started and not is_finished:
        raise MissingFileError(f"{folder} isn't finished; run the same `bertkit prepare` again")
    if not is_finished:
        raise MissingFileError(
            f"{folder} has no shards; name a folder that `bertkit prepare` wrote"
        )
    return ShardsManifest.load(path)


def shard_path(folder: Path, name: str, part: str) -> Path:
    """Return the path of one of a shard's files; `part` is one of `PARTS`."""
    return folder / SHARDS_FOLDER / f"{name}.{part}.npy"


def choose_dtype(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned type that fits each id of a vocabulary."""
    return np.dtype(np.min_scalar_type(vocab_size - 1))
