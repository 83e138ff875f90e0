"""Learn static word vectors from shards: skip-gram with negative sampling, trained by gensim.

It takes minutes, so interrupted runs start over.

Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their
Compositionality", sections 2.2 and 2.3.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import InputError, MissingExtraError, ResumeError
from bertkit.base.files import make_folder
from bertkit.base.output import list_names
from bertkit.base.progress import show_progress
from bertkit.data.shards import Shard, ShardSet
from bertkit_studies.baselines.settings import SkipGramSettings
from bertkit_studies.recurrent.config import StaticVectorsConfig
from bertkit_studies.recurrent.word_vectors import StaticVectors

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
    if (output / RECORD_FILE).exists():
        return VectorsRecord.load(output / RECORD_FILE)
    if list_names(output) or output.is_file():
        raise ResumeError(
            f"{output} holds something that isn't word vectors; choose another folder"
        )
    return None


def learn_vectors(
    sentences: Iterable[Sequence[str]], vocab_size: int, settings: SkipGramSettings
) -> StaticVectors:
    """Learn vectors from sentences; deterministic for the same sentences and settings.

    Args:
        sentences: token ids as decimal strings; iterated once more than there are epochs.
        vocab_size: entries of the vocabulary; entries that are too rare have zeros.
        settings: how to learn them.

    Raises:
        InputError: no token occurs `min_count` times.
        MissingExtraError: gensim isn't installed.
    """
    trained = load_word2vec()(
        vector_size=settings.vector_size,
        window=settings.window,
        negative=settings.negative,
        epochs=settings.epochs,
        min_count=settings.min_count,
        seed=settings.seed,
        sg=1,
        hs=0,
        workers=1,  # several aren't deterministic
    )
    trained.build_vocab(sentences)
    words = trained.wv.index_to_key
    if not words:
        raise InputError(
            f"no token occurs {settings.min_count:,} times; provide more text, or lower min_count"
        )
    trained.train(sentences, total_examples=trained.corpus_count, epochs=settings.epochs)
    net = StaticVectors(
        StaticVectorsConfig(vocab_size=vocab_size, vector_size=settings.vector_size)
    )
    net.embeddings.weight.zero_()
    net.embeddings.weight[[int(word) for word in words]] = torch.from_numpy(trained.wv.vectors)
    return net.eval()


def load_word2vec() -> Any:
    """Import gensim's Word2Vec class.

    Raises:
        MissingExtraError: gensim isn't installed, or can't be loaded.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise MissingExtraError(
            f"gensim, which learns word vectors, can't be loaded ({error}); pip install gensim"
        ) from None
    return Word2Vec
