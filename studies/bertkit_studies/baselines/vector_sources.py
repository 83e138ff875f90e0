"""Sources of text vectors: a frozen encoder, skip-gram or skip-thought."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bertkit.base.settings import Count
from bertkit.data.shards import ShardSet
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings, PoolingName
from bertkit_studies.baselines.settings import SkipGramSettings, SkipThoughtSettings
from bertkit_studies.baselines.skip_thought import train_skip_thought
from bertkit_studies.baselines.text_vectors import TextEncoder, encode_texts
from bertkit_studies.baselines.vector_classifier import Encode
from bertkit_studies.baselines.word_vectors import train_word_vectors
from bertkit_studies.recurrent.skip_thought import SkipThought

SKIP_GRAM, SKIP_THOUGHT = "skip-gram", "skip-thought"
READ_TOGETHER, SPECIAL_TOKENS = 3, 4  # of a skip-thought example: sentences, special tokens


@dataclass(frozen=True)
class Learning:
    """How to train a net that encodes texts, on shards.

    Attributes:
        data: the shards.
        output: the net's folder.
        tokens: training budget in tokens, approximate.
        tokens_per_step: tokens of a training step, approximate.
        num_features: size of a vector.
        max_length: maximum tokens of a text to encode.
        seed: the seed of the run.
        device: the device to train on.
    """

    data: Path
    output: Path
    tokens: Count
    tokens_per_step: float
    num_features: int
    max_length: int
    seed: int
    device: str


def freeze(checkpoint: Path, pooling: PoolingName, max_length: int, device: str) -> Encode:
    """Return an encoder of texts that pools a frozen checkpoint's hidden states."""
    settings = EmbedderSettings(pooling=(pooling,), max_length=max_length, engine="torch")
    return Embedder.load(checkpoint, settings, device=device)


def learn_skip_gram(learning: Learning) -> Encode:
    """Train skip-gram vectors, in whole epochs or on sampled sentences; encode by their mean."""
    size = max(1, ShardSet.open(learning.data).manifest.train.tokens)
    settings = SkipGramSettings(
        vector_size=learning.num_features,
        epochs=max(1, round(learning.tokens / size)),
        seed=learning.seed,
    )
    net = train_word_vectors(
        learning.data, learning.output, settings, drawn_tokens=min(learning.tokens, size)
    )
    return read_with(net, learning)


def learn_skip_thought(learning: Learning) -> Encode:
    """Train skip-thought; encode a text by the net's final state."""
    text = ShardSet.open(learning.data).manifest.train
    sentence_tokens = text.tokens / max(1, text.sentences)
    example_tokens = READ_TOGETHER * sentence_tokens + SPECIAL_TOKENS
    settings = SkipThoughtSettings(
        tokens=learning.tokens,
        embedding_size=learning.num_features,
        hidden_size=learning.num_features,
        batch_size=max(1, round(learning.tokens_per_step / example_tokens)),
        seed=learning.seed,
        device=learning.device,
    )
    result = train_skip_thought(learning.data, learning.output, settings)
    return read_with(SkipThought.from_pretrained(result.checkpoint), learning)


def read_with(net: TextEncoder, learning: Learning) -> Encode:
    """Return a function that encodes texts with a net."""
    tokenizer = ShardSet.open(learning.data).load_tokenizer()
    return lambda texts: encode_texts(net, tokenizer, texts, learning.max_length)


LEARNERS: Mapping[str, Callable[[Learning], Encode]] = {
    SKIP_THOUGHT: learn_skip_thought,
    SKIP_GRAM: learn_skip_gram,
}
