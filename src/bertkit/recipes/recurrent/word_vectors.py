"""Learn static word vectors from shards; minutes, so a run that was interrupted begins again."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from bertkit.base.errors import DamagedFileError, InputError, ResumeError, storage_errors
from bertkit.base.files import TEMPORARY_SUFFIX, make_folder
from bertkit.base.progress import show_progress
from bertkit.base.sealed import read_sealed_json, write_sealed_json
from bertkit.base.settings import describe_validation
from bertkit.data.shards import Shard, ShardSet
from bertkit.models.recurrent.word_vectors import SkipGramSettings, StaticVectors, learn_vectors

RECORD_FILE = "bertkit_vectors.json"  # written before all else, and again when all is there
PROGRESS_SENTENCES = 1000


class VectorsRecord(BaseModel):
    """What vectors were learnt from.

    Attributes:
        settings: how.
        data_fingerprint: of the shards.
        max_tokens: of the beginning of the text, which was read; None for all of it.
        is_whole: whether the vectors are there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: dict[str, Any]
    data_fingerprint: str
    max_tokens: int | None = None
    is_whole: bool


@dataclass(frozen=True)
class ShardSentences:
    """The first sentences of shards, each time from the beginning.

    Args:
        parts: shards, and how many sentences of each.
        advance: is told of every so many sentences.
    """

    parts: Sequence[tuple[Shard, int]]
    advance: Callable[[int], None]

    def __iter__(self) -> Iterator[list[str]]:
        for shard, num_sentences in self.parts:
            offsets = shard.sentence_offsets.tolist()
            tokens = shard.tokens(0, offsets[num_sentences])
            for number in range(num_sentences):
                sentence = tokens[offsets[number] : offsets[number + 1]]
                yield list(map(str, sentence.tolist()))
                if not (number + 1) % PROGRESS_SENTENCES:
                    self.advance(PROGRESS_SENTENCES)


def choose_sentences(shards: ShardSet, max_tokens: int | None) -> list[tuple[Shard, int]]:
    """The beginning of the training text: its shards, and how many sentences of each.

    Args:
        shards: the text.
        max_tokens: no sentence begins behind so many; None for the whole text.
    """
    left = math.inf if max_tokens is None else max_tokens
    parts = []
    for shard in shards.train:
        parts.append((shard, int(np.searchsorted(shard.sentence_offsets[:-1], left))))
        left -= shard.num_tokens
    return parts


def train_word_vectors(
    data: Path, output: Path, settings: SkipGramSettings, max_tokens: int | None = None
) -> StaticVectors:
    """Learn vectors and write their folder; those that are there already are loaded.

    Args:
        data: what `prepare` wrote.
        output: the model's folder.
        settings: how.
        max_tokens: of each pass over the text, from its beginning; None for all of it.

    Raises:
        ResumeError: `output` holds vectors of other settings or data, or something else.
        InputError: there is too little text.
        MissingExtraError: gensim isn't installed.
        BertkitError: the shards can't be read, or the disk refused.
    """
    shards = ShardSet.open(data)
    wanted = VectorsRecord(
        settings=settings.model_dump(mode="json"),
        data_fingerprint=shards.fingerprint,
        max_tokens=max_tokens,
        is_whole=True,
    )
    found = read_record(output)
    if found is not None and found.model_copy(update={"is_whole": True}) != wanted:
        raise ResumeError(
            f"{output} holds vectors of other settings or data; choose another folder"
        )
    if found is not None and found.is_whole:
        return StaticVectors.from_pretrained(output)
    if not shards.train:
        raise InputError(f"{data} has no training text; prepare a larger corpus")
    write_record(output, wanted.model_copy(update={"is_whole": False}))
    parts = choose_sentences(shards, max_tokens)
    total = sum(number for _, number in parts) * (settings.epochs + 1)
    with show_progress("Learning word vectors", total) as progress:
        sentences = ShardSentences(parts, progress.advance)
        net = learn_vectors(sentences, shards.manifest.vocab_size, settings)
    net.save_pretrained(output)
    shards.load_tokenizer().save(output)
    write_record(output, wanted)
    return net


def write_record(output: Path, record: VectorsRecord) -> None:
    """Say what the vectors in a folder are learnt from.

    Raises:
        StorageError: the disk refused.
    """
    make_folder(output)
    write_sealed_json(output / RECORD_FILE, record.model_dump(mode="json"))


def read_record(output: Path) -> VectorsRecord | None:
    """What the vectors in a folder were learnt from; None where nothing is.

    Raises:
        ResumeError: it holds something else.
        DamagedFileError: the record can't be read.
        StorageError: the system can't tell.
    """
    path = output / RECORD_FILE
    with storage_errors(output, "read"):
        if not output.exists():
            return None
        if not path.exists():
            files = output.iterdir() if output.is_dir() else [output]
            if all(file.suffix == TEMPORARY_SUFFIX for file in files):
                return None
            raise ResumeError(
                f"{output} holds something that isn't word vectors; choose another folder"
            )
    try:
        return VectorsRecord.model_validate(read_sealed_json(path))
    except ValidationError as error:
        raise DamagedFileError(
            f"{path} isn't the record of word vectors: {describe_validation(error)}"
        ) from None
