"""The examples that pre-training learns from: pairs of sentences, with words to predict."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from bertkit.base.errors import InputError, SettingsError
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import ShardSet
from bertkit.models.bert.heads import IS_NEXT
from bertkit.tasks.objectives.masked_pairs import MaskedBatch
from bertkit.tasks.objectives.settings import ObjectiveSettings
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.tokenizer import Tokenizer

MAX_COUNTED = 10_000  # examples


class ExampleToken(NamedTuple):
    """A token as the model reads it, and the word to predict there, if it was chosen."""

    text: str
    label: str | None


@dataclass(frozen=True)
class TrainingExample:
    """A sentence pair, with the words that the model predicts."""

    segments: tuple[tuple[ExampleToken, ...], tuple[ExampleToken, ...]]  # without special tokens
    is_next: bool | None  # None if the objective doesn't predict it


@dataclass(frozen=True)
class ExampleCounts:
    """What is in the first examples of a run, without special tokens."""

    examples: int
    tokens: int
    masked: int  # chosen words that became [MASK]
    random: int  # that became another word
    kept: int  # that stayed
    is_next: int | None
    not_next: int | None

    @property
    def chosen(self) -> int:
        """Words to predict."""
        return self.masked + self.random + self.kept


@dataclass(frozen=True)
class ShownExamples:
    """The first examples of a run, and counts of all that were looked at."""

    examples: list[TrainingExample]
    counts: ExampleCounts


def show_examples(
    folder: Path, num_examples: int, settings: ObjectiveSettings, seed: int
) -> ShownExamples:
    """Return the first examples of a run on these shards, and counts of up to `MAX_COUNTED`.

    Raises:
        SettingsError: the objective chooses no words.
        InputError: the shards have no text to learn from.
    """
    if settings.objective == "causal":
        raise SettingsError(
            "the objective causal chooses no words: each token predicts the next; give bert or mlm"
        )
    shards = ShardSet.open(folder)
    if not shards.train:
        raise InputError(f"{folder} has no text to learn from; prepare more text")
    tokenizer = shards.load_tokenizer()
    kind = OBJECTIVES[settings.objective]
    objective = kind.build(shards.train, tokenizer, settings, seed, shards.token_counts)
    sizes = [shard.num_tokens for shard in shards.train]
    order = ExampleOrder(sizes, objective.plan, seed)
    batch = objective.batch(list(islice(order.first_epoch(), MAX_COUNTED)))
    examples = read_batch(batch, tokenizer)
    return ShownExamples(examples[:num_examples], count_examples(examples, tokenizer))


def read_batch(batch: MaskedBatch, tokenizer: Tokenizer) -> list[TrainingExample]:
    """Return a batch as text."""
    words, ids = tokenizer.vocabulary, batch.packed.input_ids.tolist()
    labels = dict(zip(batch.positions.tolist(), batch.labels.tolist(), strict=True))
    segments = batch.packed.token_type_ids.tolist()
    relations = getattr(batch, "next_sentence_labels", None)
    ends = accumulate(batch.packed.lengths, initial=0)
    examples = []
    for number, (start, stop) in enumerate(pairwise(ends)):
        halves: tuple[list[ExampleToken], list[ExampleToken]] = ([], [])
        for place in range(start, stop):
            label = labels.get(place)
            if label is None and ids[place] in tokenizer.special_ids:
                continue
            word = None if label is None else words[label]
            halves[segments[place]].append(ExampleToken(words[ids[place]], word))
        is_next = None if relations is None else int(relations[number]) == IS_NEXT
        first, second = map(tuple, halves)
        examples.append(TrainingExample((first, second), is_next))
    return examples


def count_examples(examples: Sequence[TrainingExample], tokenizer: Tokenizer) -> ExampleCounts:
    """Count tokens, chosen words by what became of them, and both kinds of pairs."""
    mask = tokenizer.vocabulary[tokenizer.mask_id]
    tokens = [token for example in examples for half in example.segments for token in half]
    found = Counter(find_action(token, mask) for token in tokens)
    relations = Counter(example.is_next for example in examples)
    has_relations = None not in relations
    return ExampleCounts(
        len(examples),
        len(tokens),
        found["masked"],
        found["random"],
        found["kept"],
        relations[True] if has_relations else None,
        relations[False] if has_relations else None,
    )


def find_action(token: ExampleToken, mask: str) -> str | None:
    """Return what became of a word: masked, random or kept; None if it wasn't chosen."""
    if token.label is None:
        return None
    if token.text == mask:
        return "masked"
    return "kept" if token.text == token.label else "random"
