"""Where vectors of texts come from: a frozen encoder, skip-gram, or skip-thought."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bertkit.data.shards import ShardSet
from bertkit.embeddings.embedder import Embedder
from bertkit.embeddings.settings import EmbedderSettings, PoolingName
from bertkit.models.recurrent.skip_thought import SkipThought
from bertkit.models.recurrent.word_vectors import SkipGramSettings
from bertkit.studies.baselines.settings import SkipThoughtSettings
from bertkit.studies.baselines.skip_thought import train_skip_thought
from bertkit.studies.baselines.text_vectors import TextEncoder, encode_texts
from bertkit.studies.baselines.vector_classifier import Encode
from bertkit.studies.baselines.word_vectors import train_word_vectors
from bertkit.training.settings import Count

SKIP_GRAM, SKIP_THOUGHT = "skip-gram", "skip-thought"
READ_TOGETHER, SPECIAL_TOKENS = 3, 4  # of skip-thought: sentences, and tokens added to them


@dataclass(frozen=True)
class Learning:
    """How a net learns vectors from shards.

    Attributes:
        data: the shards.
        output: its folder.
        tokens: that it reads, as near as it can.
        tokens_per_step: of a step of training, likewise.
        num_features: of a vector.
        max_length: tokens of a text that is made a vector.
        seed: of the run.
        device: where it learns.
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
    """The mean of an encoder's hidden states, of one layer or of several side by side."""
    settings = EmbedderSettings(pooling=(pooling,), max_length=max_length, engine="torch")
    return Embedder.load(checkpoint, settings, device=device).encode


def learn_skip_gram(learning: Learning) -> Encode:
    """The mean of static vectors; the text is read in whole passes, or sentences of it once."""
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
    """The state of a net that has read the text."""
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
    """Texts as vectors of a net."""
    tokenizer = ShardSet.open(learning.data).load_tokenizer()
    return lambda texts: encode_texts(net, tokenizer, texts, learning.max_length)


LEARNERS: Mapping[str, Callable[[Learning], Encode]] = {
    SKIP_THOUGHT: learn_skip_thought,
    SKIP_GRAM: learn_skip_gram,
}
