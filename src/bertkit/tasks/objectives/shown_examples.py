"""The examples that pre-training learns from, as text: sentence pairs, and the words to predict."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from bertkit.base.errors import InputError, SettingsError
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import ShardSet
from bertkit.models.bert.architectures import IS_NEXT
from bertkit.tasks.objectives.masked_pairs import MaskedBatch, MaskedPairs
from bertkit.tasks.objectives.settings import ObjectiveSettings
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.tokenizer import Tokenizer

MAX_COUNTED = 10_000  # examples
RELATIONS = {True: "IsNext", False: "NotNext"}


class ExampleToken(NamedTuple):
    """A token as the model reads it, and the word to predict there, if it was chosen."""

    text: str
    label: str | None


@dataclass(frozen=True)
class TrainingExample:
    """A sentence pair, with the words that the model predicts."""

    segments: tuple[tuple[ExampleToken, ...], tuple[ExampleToken, ...]]  # without special tokens
    is_next: bool | None  # None if the objective doesn't predict it

    @property
    def relation(self) -> str | None:
        """The name of what the objective predicts of the pair."""
        return None if self.is_next is None else RELATIONS[self.is_next]


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

    @property
    def relations(self) -> dict[str, int]:
        """The number of pairs by `TrainingExample.relation`."""
        counted = zip(RELATIONS.values(), (self.is_next, self.not_next), strict=True)
        return {name: number for name, number in counted if number is not None}


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
    kind = OBJECTIVES[settings.objective]
    if not issubclass(kind, MaskedPairs):
        raise SettingsError(
            f"the objective {settings.objective} chooses no words: each token predicts the next;"
            " give bert or mlm"
        )
    shards = ShardSet.open(folder)
    if not shards.train:
        raise InputError(f"{folder} has no text to learn from; prepare more text")
    tokenizer = shards.load_tokenizer()
    objective = kind.build(shards.train, tokenizer, settings, seed)
    sizes = [shard.num_tokens for shard in shards.train]
    order = ExampleOrder(sizes, objective.plan, seed)
    batch = objective.batch(list(islice(order.first_epoch(), MAX_COUNTED)))
    examples = read_batch(batch, tokenizer)
    return ShownExamples(examples[:num_examples], count_examples(examples, tokenizer))


def read_batch(batch: MaskedBatch, tokenizer: Tokenizer) -> list[TrainingExample]:
    """Return a batch as text."""
    words, ids = tokenizer.descriptions, batch.packed.input_ids.tolist()
    labels = dict(zip(batch.positions.tolist(), batch.labels.tolist(), strict=True))
    segments = batch.packed.token_type_ids.tolist()
    relations = getattr(batch, "next_sentence_labels", None)
    ends = accumulate(batch.packed.lengths, initial=0)
    examples = []
    for number, (start, stop) in enumerate(pairwise(ends)):
        halves: tuple[list[ExampleToken], list[ExampleToken]] = ([], [])
        for position in range(start, stop):
            label = labels.get(position)
            if label is not None or ids[position] not in tokenizer.special_ids:
                token = ExampleToken(words[ids[position]], None if label is None else words[label])
                halves[segments[position]].append(token)
        is_next = None if relations is None else int(relations[number]) == IS_NEXT
        first, second = map(tuple, halves)
        examples.append(TrainingExample((first, second), is_next))
    return examples


def count_examples(examples: Sequence[TrainingExample], tokenizer: Tokenizer) -> ExampleCounts:
    """Count tokens, chosen words by what became of them, and both kinds of pairs."""
    mask = tokenizer.mask
    tokens = [token for example in examples for half in example.segments for token in half]
    chosen = [token for token in tokens if token.label is not None]
    num_masked = sum(token.text == mask for token in chosen)
    num_kept = sum(token.text == token.label != mask for token in chosen)
    relations = Counter(example.is_next for example in examples)
    has_relations = None not in relations
    return ExampleCounts(
        examples=len(examples),
        tokens=len(tokens),
        masked=num_masked,
        random=len(chosen) - num_masked - num_kept,
        kept=num_kept,
        is_next=relations[True] if has_relations else None,
        not_next=relations[False] if has_relations else None,
    )
