"""The parts of a pre-training run: data, model, machine, and the job for the training loop."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.base import wings
from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import announce
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import Shard, ShardSet
from bertkit.models.bert.architectures import IS_NEXT
from bertkit.models.bert.config import BertConfig, describe_direction
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining, WordScoringBert
from bertkit.models.open_model import OpenModel
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.reports.text import format_percent
from bertkit.tasks.metrics.shares import COUNT
from bertkit.tasks.metrics.texts import find_bits_per_character, find_perplexity
from bertkit.tasks.objectives.bert import BertObjective
from bertkit.tasks.objectives.masked_pairs import IS_RANDOM
from bertkit.tasks.objectives.objective import AnyObjective, WordBatch
from bertkit.tasks.objectives.settings import MaskingSettings, ObjectiveName
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Job, Machine, MicroBatch, Scores
from bertkit.training.step import evaluate_batches

# Held-out examples are planned and masked alike for every run: with a fixed seed, and as in the
# paper, so that runs with other mask rates can be compared.
EVALUATION_SEED = 2**31
EVALUATION_MASKS = MaskingSettings()


def evaluate_words(
    model: WordScoringBert,
    batches: Sequence[WordBatch],
    objective: type[AnyObjective],
    tokenizer: Tokenizer,
    device: torch.device,
    advance: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Return mean losses and accuracies and their counts, perplexity and bits per character."""
    metrics = evaluate_batches(model, batches, objective.loss, device, advance)
    for name in batches[0].target_counts:
        metrics[f"{name}_{COUNT}"] = sum(batch.target_counts[name] for batch in batches)
    num_targets = sum(len(batch.labels) for batch in batches)
    lengths = tokenizer.token_lengths
    num_characters = sum(int(lengths[batch.labels.numpy()].sum()) for batch in batches)
    words = objective.batch_kind.word_loss
    loss = metrics[f"{words}_loss"]
    bits = find_bits_per_character(loss, num_targets, max(1, num_characters))
    more = {"perplexity": find_perplexity(loss), "bits_per_character": bits}
    return {**metrics, **{f"{words}_{name}": value for name, value in more.items()}}


def build_objective(
    parts: Sequence[Shard], tokenizer: Tokenizer, settings: PretrainSettings
) -> AnyObjective:
    """Build the objective over some of the shards."""
    return OBJECTIVES[settings.objective].build(parts, tokenizer, settings, settings.seed)


def held_out_batches(
    shards: ShardSet, tokenizer: Tokenizer, settings: PretrainSettings
) -> list[Any]:
    """Return the held-out batches; every evaluation of every run uses the same masks."""
    if not shards.held_out:
        raise InputError(
            "the shards have no held-out text; prepare again with a larger --held-out share"
        )
    masked_alike = settings.model_copy(update=dict(EVALUATION_MASKS))
    objective = build_objective(shards.held_out, tokenizer, masked_alike)
    objective = replace(objective, seed=EVALUATION_SEED)
    order = ExampleOrder(
        [shard.num_tokens for shard in shards.held_out], objective.plan, seed=EVALUATION_SEED
    )
    examples = list(islice(order.first_epoch(), settings.eval_examples))
    size = objective.num_evaluated
    batches = [
        objective.batch(examples[start : start + size]) for start in range(0, len(examples), size)
    ]
    if not any(len(batch.labels) for batch in batches):
        raise InputError(
            "the held-out text has no known word to mask; check that it was prepared with the"
            " right tokenizer"
        )
    return batches


def open_source(name: str, settings: PretrainSettings, tokenizer: Tokenizer) -> OpenModel:
    """Open a model with the run's dropout and direction; check that it fits the shards."""
    opened = OpenModel.open(name, revision=settings.revision)
    objective = find_objective(opened) if settings.continues_objective else settings.objective
    direction = OBJECTIVES[objective].model_kind.direction
    opened = opened.change(**settings.dropout_rates, **direction)
    if opened.tokenizer.fingerprint == tokenizer.fingerprint:
        return opened
    named = settings.model if opened.is_from_hub else opened.folder
    revision = f" --revision {settings.revision}" if settings.revision else ""
    raise InputError(
        f"the shards were prepared with another tokenizer than that of {settings.model};"
        f" prepare them with its own: bertkit prepare … --tokenizer {named}{revision}"
    )


def find_objective(opened: OpenModel) -> ObjectiveName:
    """Return the objective that a model was pre-trained with, by its direction and its heads.

    It is a `MissingExtraError` if that objective is of a wing that isn't installed.
    """
    kind: type[WordScoringBert] = opened.word_model
    if kind is BertForMaskedLM and "next_sentence" in opened.heads:
        kind = BertForPreTraining
    found = [name for name, one in OBJECTIVES.items() if one.model_kind is kind]
    if not found:
        for added in wings.OBJECTIVES.values():
            wings.load_object(added.objective)  # the one that isn't installed is named
    return found[0]


def load_source(
    source: OpenModel,
    settings: PretrainSettings,
    token_counts: NDArray[np.unsignedinteger],
) -> WordScoringBert:
    """Build the model with a checkpoint's weights; announce heads that are new or dropped."""
    kind = OBJECTIVES[settings.objective].model_kind
    model = kind.from_pretrained(source, new_heads=True)
    if model.new_heads:
        heads = ", ".join(model.new_heads)
        announce(f"new weights for {heads}, which {source.folder} doesn't have")
    if "masked_lm" in model.new_heads:
        model.masked_lm.start_at_frequencies(torch.from_numpy(token_counts.astype(np.int64)))
    if left := source.list_unused_heads(kind.__name__, model.state_dict()):
        announce(
            f"dropped: {', '.join(left)} of {source.folder}, which the objective"
            f" {settings.objective} doesn't use"
        )
    if source.is_bidirectional != source.config.is_bidirectional:
        way = describe_direction(source.config.to_dict()) or "both ways"
        announce(f"{source.folder} was trained in the other direction; it is now {way}")
    return model


def find_trained_length(
    settings: PretrainSettings, model_max_length: int | None, config: BertConfig
) -> int | None:
    """Return the maximum length the positions are trained on after this run; None if unknown."""
    if settings.model is None or OBJECTIVES[settings.objective].sets_length:
        return settings.longest
    if model_max_length is None:
        return None
    return min(max(model_max_length, settings.longest), config.max_length)


COUNTED_PAIRS = 4096
OTHER_DOCUMENTS = "several documents (a blank line between two)"
MORE_SENTENCES = "documents of several sentences"


def _describe_pairs(num_next: int, number: int, kind: str) -> str:
    share = format_percent(num_next / number)
    pairs, verb = pluralize(number, f"{kind} pair"), "is" if num_next == 1 else "are"
    return f"next sentences: {num_next:,} of {pairs} {verb} IsNext ({share})"


class PretrainingJob(Job[WordBatch]):
    """Training on the shards; in a second phase, if there is one, with longer examples."""

    settings: PretrainSettings

    def __init__(
        self,
        settings: PretrainSettings,
        model: WordScoringBert,
        machine: Machine,
        shards: ShardSet,
        tokenizer: Tokenizer,
        trained_length: int | None,  # of positions, before or in this run; None if unknown
    ) -> None:
        model.encoder.recomputes = settings.checkpoint_activations
        self.model, self.machine = model.to(machine.device), machine
        self.shards, self.tokenizer, self.trained_length = shards, tokenizer, trained_length
        self.kind = OBJECTIVES[settings.objective]
        self.progress_metrics = self.kind.progress_metrics
        if settings.optimizer == "muon":
            self.muon_learning_rate = settings.muon_learning_rate
        self.held_out = held_out_batches(shards, tokenizer, settings)
        self.next_phase: tuple[int, PretrainingJob] | None = None  # from a step on
        self.plan_examples(settings)

    def plan_examples(self, settings: PretrainSettings) -> None:
        """Plan the examples of all steps."""
        self.settings, self.num_micro_batches = settings, settings.accumulate
        self.objective = build_objective(self.shards.train, self.tokenizer, settings)
        lengths = [shard.num_tokens for shard in self.shards.train]
        self.order = ExampleOrder(lengths, self.objective.plan, seed=settings.seed)

    def check_pairs(self) -> None:
        """Announce how often B follows A; raise `InputError` if it always or never does.

        The training text is judged by its first `COUNTED_PAIRS` pairs. Held-out pairs of one kind
        are only announced: the model learns, but the accuracy on them isn't meaningful.
        """
        if not issubclass(self.kind, BertObjective):
            return
        examples = islice(self.order.first_epoch(), COUNTED_PAIRS)
        is_random = [int(example.row[IS_RANDOM]) for example in examples]
        num_next, number = is_random.count(0), len(is_random)
        if num_next in {0, number}:
            raise InputError(
                "next-sentence prediction can't be learned: the second text follows the first in"
                f" {'all' if num_next else 'none'} of {pluralize(number, 'training pair')}. Use"
                f" {OTHER_DOCUMENTS if num_next else MORE_SENTENCES}, or --objective mlm"
            )
        announce(_describe_pairs(num_next, number, "training"))
        labels = torch.cat([batch.next_sentence_labels for batch in self.held_out])
        num_next, number = int((labels == IS_NEXT).sum()), len(labels)
        line = _describe_pairs(num_next, number, "held-out")
        if num_next in {0, number}:
            line = f"WARNING: {line}; next-sentence accuracy isn't meaningful"
        announce(line)

    @cached_property
    def long_job(self) -> "PretrainingJob | None":
        """The same with longer examples, for the second phase; None if there is none."""
        if self.settings.long_length is None:
            return None
        long = copy.copy(self)
        long.plan_examples(self.settings.as_long())
        return long

    @property
    def phases(self) -> "list[tuple[PretrainingJob, float]]":
        """The parts of a run, one or two, each with its share of the steps."""
        if self.long_job is None:
            return [(self, 1.0)]
        return [(self, 1.0 - self.last_share), (self.long_job, self.last_share)]

    @property
    def last_share(self) -> float:  # type: ignore[override]
        """The share of the steps with longer examples."""
        return 0.0 if self.long_job is None else self.settings.long_share

    @cached_property
    def last_cost(self) -> float:  # type: ignore[override]
        """How many times as many operations a step with longer examples has."""
        if self.long_job is None:
            return 1.0
        short, long = (
            sum(map(job.count_operations, job.batches_at(0))) for job in (self, self.long_job)
        )
        return long / short

    def set_num_steps(self, num_steps: int, phase_step: int | None) -> None:
        """Begin the second phase at its step; a run that grows has other phases from then on."""
        if self.long_job is None:
            return
        first = round((1.0 - self.last_share) * num_steps) if phase_step is None else phase_step
        self.next_phase = (first, self.long_job)
        if self.lookahead is not None:
            self.lookahead.forget()

    def examples_at(self, step: int) -> range:
        """Return the places of a step's examples in the order."""
        size = self.settings.batch_size
        return range(step * size, (step + 1) * size)

    def collate(self, examples: Sequence[int]) -> WordBatch:
        """Build the examples at some places."""
        batch: WordBatch = self.objective.batch([self.order.example(each) for each in examples])
        return batch

    def cut(self, step: int, rank: int, num_ranks: int) -> list[MicroBatch[WordBatch]]:
        """Make the micro-batches of the phase that a step is in."""
        if self.next_phase is not None and step >= self.next_phase[0]:
            first, job = self.next_phase
            return job.cut(step - first, rank, num_ranks)
        return super().cut(step, rank, num_ranks)

    def name_examples(self, step: int) -> str:
        """Return the number of each example in its shard, with the names of the shards."""
        numbers: dict[tuple[int, int], list[str]] = {}
        for batch in self.batches_at(step):
            for key in batch.keys:
                numbers.setdefault((key.epoch, key.shard), []).append(str(key.index))
        return "; ".join(
            f"{', '.join(found)} of shard {self.shards.train[shard].name} in epoch {epoch}"
            for (epoch, shard), found in numbers.items()
        )

    def loss(self, model: WordScoringBert, batch: WordBatch) -> Scores:
        """Return the objective's losses."""
        return self.kind.loss(model, batch)

    def evaluate(self) -> dict[str, float]:
        """Return losses and accuracies on the held-out examples."""
        device = self.machine.device
        return evaluate_words(self.model, self.held_out, self.kind, self.tokenizer, device)

    def count_operations(self, batch: WordBatch) -> float:
        """Return the operations of encoder and heads."""
        return float(self.model.count_operations(batch.packed, len(batch.labels)))

    def save_rest(self, folder: Path) -> dict[str, FileRecord]:
        """Write the tokenizer, with the length that the positions were trained on."""
        return self.tokenizer.save(folder, max_length=self.trained_length)
