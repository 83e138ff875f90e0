"""Static word vectors: skip-gram with negative sampling.

Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their
Compositionality", sections 2.2 and 2.3; trained by gensim.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from bertkit.base.errors import InputError, MissingExtraError
from bertkit.base.settings import Settings
from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.config import StaticVectorsConfig
from bertkit_studies.recurrent.net import SavedNet

Count = Annotated[int, Field(ge=1)]


class SkipGramSettings(Settings):
    """How the vectors are learned; the defaults are gensim's, but for the size."""

    vector_size: Annotated[int, Field(ge=1, le=4096)] = Field(
        128, description="Features of a word's vector."
    )
    window: Count = Field(5, description="Maximum number of words predicted on each side.")
    negative: Count = Field(5, description="Negative samples for each predicted word.")
    epochs: Count = Field(5, description="Passes over the text.")
    min_count: Count = Field(5, description="Words that occur less often get no vector.")
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        0, description="Seed of initial vectors, windows and negative samples."
    )


class StaticVectors(SavedNet):
    """A frozen table of word vectors; a text's vector is the mean of its tokens' vectors.

    Args:
        config: the sizes.
    """

    config_kind = StaticVectorsConfig
    config: StaticVectorsConfig

    def __init__(self, config: StaticVectorsConfig) -> None:
        super().__init__(config)
        self.table = nn.Embedding(config.vocab_size, config.vector_size)
        self.table.weight.requires_grad_(False)

    def encode(self, batch: PackedBatch) -> Float[Tensor, "sequences features"]:
        """Return the mean vector of each text's known tokens; zeros if it has none."""
        vectors = self.table(batch.input_ids)
        sums = torch.stack([part.sum(dim=0) for part in vectors.split(batch.lengths)])
        is_known = vectors.any(dim=1)
        counts = torch.stack([part.sum() for part in is_known.split(batch.lengths)])
        return sums / counts.clamp(min=1)[:, None]


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
    net.table.weight.zero_()
    net.table.weight[[int(word) for word in words]] = torch.from_numpy(trained.wv.vectors)
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
            f"gensim, which learns word vectors, can't be loaded ({error});"
            " pip install 'bertkit-studies[vectors]'"
        ) from None
    return Word2Vec
