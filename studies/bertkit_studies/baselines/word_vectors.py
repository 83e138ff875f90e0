"""Learn static word vectors from shards; it takes minutes, so interrupted runs start over."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import InputError, ResumeError, storage_errors
from bertkit.base.files import TEMPORARY_SUFFIX, make_folder
from bertkit.base.progress import show_progress
from bertkit.data.shards import Shard, ShardSet
from bertkit_studies.recurrent.word_vectors import SkipGramSettings, StaticVectors, learn_vectors

RECORD_FILE = "bertkit_vectors.json"  # written first, and again when the vectors are complete
PROGRESS_SENTENCES = 1000


class VectorsRecord(ChecksummedModel):
    """The settings and data that vectors were learned from.

    Attributes:
        settings: training settings.
        data_fingerprint: fingerprint of the shards.
        drawn_tokens: approximate tokens of the sampled sentences; None if the whole text was
            read.
        is_whole: whether the vectors are complete.
    """

    description: ClassVar[str] = "the record of word vectors"

    settings: dict[str, Any]
    data_fingerprint: str
    drawn_tokens: int | None
    is_whole: bool


@dataclass(frozen=True)
class ShardSentences:
    """The sentences of shards; each iteration starts from the first.

    Args:
        parts: shards, each with the indices of its sentences.
        advance: called with the number of sentences read, for progress.
    """

    parts: Sequence[tuple[Shard, NDArray[np.intp]]]
    advance: Callable[[int], None]

    def __iter__(self) -> Iterator[list[str]]:
        for shard, numbers in self.parts:
            starts, stops = shard.sentence_offsets[numbers], shard.sentence_offsets[numbers + 1]
            places = zip(starts.tolist(), stops.tolist(), strict=True)
            for num_before, (start, stop) in enumerate(places):
                yield list(map(str, shard.tokens(start, stop).tolist()))
                if not (num_before + 1) % PROGRESS_SENTENCES:
                    self.advance(PROGRESS_SENTENCES)


def draw_sentences(
    shards: ShardSet, drawn_tokens: int | None, seed: int
) -> list[tuple[Shard, NDArray[np.intp]]]:
    """Sample sentences of the training text uniformly, in their order.

    Args:
        shards: the text.
        drawn_tokens: their approximate number of tokens; None for the whole text.
        seed: the seed of the sample.

    Returns:
        The shards, each with the indices of its sampled sentences.
    """
    size = shards.manifest.train.tokens
    share = 1.0 if drawn_tokens is None else drawn_tokens / max(1, size)
    parts = []
    for number, shard in enumerate(shards.train):
        chances = np.random.default_rng((seed, number)).random(shard.num_sentences)
        parts.append((shard, np.flatnonzero(chances < share)))
    return parts


def train_word_vectors(
    data: Path, output: Path, settings: SkipGramSettings, drawn_tokens: int | None = None
) -> StaticVectors:
    """Learn vectors and save them, or load them if `output` already holds them.

    Args:
        data: a folder that `prepare` wrote.
        output: the model's folder.
        settings: training settings.
        drawn_tokens: approximate tokens of an epoch: sentences sampled once with the settings'
            seed; None for the whole text.
    """
    shards = ShardSet.open(data)
    wanted = VectorsRecord(
        settings=settings.model_dump(mode="json"),
        data_fingerprint=shards.fingerprint,
        drawn_tokens=drawn_tokens,
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
    parts = draw_sentences(shards, drawn_tokens, settings.seed)
    total = sum(len(numbers) for _, numbers in parts) * (settings.epochs + 1)
    with show_progress("Learning word vectors", total) as progress:
        sentences = ShardSentences(parts, progress.advance)
        net = learn_vectors(sentences, shards.manifest.vocab_size, settings)
    net.save_pretrained(output)
    shards.load_tokenizer().save(output)
    write_record(output, wanted)
    return net


def write_record(output: Path, record: VectorsRecord) -> None:
    """Write the record of the vectors in a folder."""
    make_folder(output)
    record.save(output / RECORD_FILE)


def read_record(output: Path) -> VectorsRecord | None:
    """Read the record of the vectors in a folder; None if the folder is new or empty."""
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
    return VectorsRecord.load(path)
