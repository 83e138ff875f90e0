"""What the report of a run with the objective causal shows: continuations of its texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bertkit.data.shards import ShardSet
from bertkit.decoders.generation.generator import Generator
from bertkit.decoders.generation.settings import GeneratorSettings
from bertkit.recipes.pretrain.corpus import list_usable
from bertkit.recipes.pretrain.objective_report import ObjectiveReport
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.sections import Curve

# Greedy decoding alone repeats itself.
GREEDY = GeneratorSettings(max_tokens=24, no_repeat_ngram=3)
# For runs whose shards are unknown; texts with words outside the vocabulary are skipped.
GENERAL_PREFIXES = ("She opened the door and", "They live in a small", "The film was so long that")


class TextPrefix(NamedTuple):
    """The first half of a sentence."""

    text: str  # the first half
    rest: str  # the second half


def choose_beginnings(shards: ShardSet, tokenizer: Tokenizer, number: int) -> list[TextPrefix]:
    """Split some sentences, spread over the largest held-out shard, near their middle."""
    if not shards.held_out:
        return []
    shard = max(shards.held_out, key=lambda shard: shard.num_sentences)
    firsts = [part[0] for part in np.array_split(list_usable(shard), number) if len(part)]
    prefixes = []
    for index in map(int, firsts):
        start, stop = (int(place) for place in shard.sentence_offsets[index : index + 2])
        ids = shard.tokens(start, stop).tolist()
        words = [place for place in range(1, len(ids)) if not tokenizer.is_continuation[ids[place]]]
        place = min(words, key=lambda place: abs(2 * place - len(ids)), default=len(ids))
        prefixes.append(TextPrefix(tokenizer.decode(ids[:place]), tokenizer.decode(ids[place:])))
    return prefixes


def continue_texts(
    checkpoint: Path, shards: ShardSet | None, texts: Sequence[str], num_examples: int
) -> list[list[str]]:
    """Return rows: text, continuation, original continuation."""
    generate = Generator.load(checkpoint, device="cpu")
    tokenizer = generate.loaded.tokenizer
    if texts:
        prefixes = [TextPrefix(text, "") for text in texts]
    elif shards is not None:
        prefixes = choose_beginnings(shards, tokenizer, num_examples)
    else:
        known = zip(GENERAL_PREFIXES, tokenizer.piece_ids(list(GENERAL_PREFIXES)), strict=True)
        prefixes = [TextPrefix(text, "") for text, ids in known if tokenizer.unk_id not in ids]
    written = generate.with_options(GREEDY)([prefix.text for prefix in prefixes])
    return [
        [prefix.text, found.answers[0].text.strip(), prefix.rest]
        for prefix, found in zip(prefixes, written, strict=True)
    ]


REPORT = ObjectiveReport(
    phrase=" as a left-to-right model",
    curves=(
        Curve("clm_loss", "Next word, loss", "nats"),
        Curve("clm_accuracy", "Next word, accuracy", "of words", is_percent=True),
    ),
    metrics={
        "loss": "loss",
        "clm_accuracy": "next-word accuracy",
        "clm_perplexity": "perplexity",
        "clm_bits_per_character": "bits per character",
    },
    finding=("clm_accuracy", "Predicts {} of {} next words right"),
    title="Continuations",
    output="Most likely continuation",
    make_examples=continue_texts,
    command="generate",
    trial="She opened the",
    choose_texts=lambda *given: [prefix.text for prefix in choose_beginnings(*given)],
)
