"""Builds the training loop's job for pairs of texts."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from bertkit.base.checksums import FileRecord
from bertkit.base.progress import announce
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.decoders.generation.settings import Seq2SeqSettingsFile, write_seq2seq_file
from bertkit.decoders.metrics import WRITING_METRICS, WritingMetrics
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq.examples import PairData
from bertkit.decoders.seq2seq.order import TokenBatchOrder
from bertkit.decoders.seq2seq.settings import DEFAULT_MINUTES, MOST_EPOCHS, Seq2SeqSettings
from bertkit.decoders.seq2seq.token_pairs import PairBatch
from bertkit.nn.packed_ids import plan_batches
from bertkit.reports.text import format_percent
from bertkit.tasks.metrics.texts import find_perplexity
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training import budget
from bertkit.training.budget import StepPace
from bertkit.training.job import Job, Machine, Scores, Watched
from bertkit.training.settings import NUM_EVALUATIONS as USUAL_EVALUATIONS
from bertkit.training.step import evaluate_batches

NUM_EVALUATIONS = 20


def convert_budget(job: "Seq2SeqJob", estimate_evaluation_seconds: Callable[[], float]) -> int:
    """Return the number of steps, at least 1; minutes cover everything but reading the data."""
    order, settings = job.order, job.settings
    if settings.epochs is not None:
        return count_epoch_steps(order, settings.epochs)
    if settings.steps is not None or settings.tokens is not None:
        return budget.count_steps(job)
    announce("measuring a few steps to convert the minutes to steps")
    end = time.monotonic() + 60.0 * (settings.minutes or DEFAULT_MINUTES)
    pace = budget.measure_pace(job)
    job.seconds_after = evaluation_seconds = estimate_evaluation_seconds()
    seconds = max(1.0, end - time.monotonic() - evaluation_seconds)
    # `count_steps_in` assumes the loop's default number of evaluations; scale their cost to ours.
    share = NUM_EVALUATIONS / USUAL_EVALUATIONS if settings.eval_every is None else 1.0
    frequent = replace(pace, evaluation_seconds=share * pace.evaluation_seconds)
    num_steps = budget.count_steps_in(seconds, frequent, settings)
    whole_epochs = range(1, int(MOST_EPOCHS))  # planned only as far as they are needed
    if settings.minutes is None and all(order.first_step(one) < num_steps for one in whole_epochs):
        num_steps = min(num_steps, count_epoch_steps(order, MOST_EPOCHS))
    tell_share(pace, settings, num_steps, evaluation_seconds)
    return num_steps


def tell_share(
    pace: StepPace, settings: Seq2SeqSettings, num_steps: int, evaluation_seconds: float
) -> None:
    """Warn if evaluation takes more of the run's time than training, and say what to do."""
    minutes = settings.minutes or DEFAULT_MINUTES
    if evaluation_seconds > 60.0 * minutes / 2:
        announce(
            f"generating all held-out texts at the end takes about {evaluation_seconds / 60:,.1f}"
            f" minutes, and the budget is {minutes:g}; hold out fewer pairs (--dev with fewer, or a"
            " smaller --held-out) or give a larger --minutes"
        )
        return
    learning = num_steps * pace.step_seconds
    scheduled = choose_schedule(settings, num_steps)
    whole = budget.seconds_of_run(pace, scheduled, num_steps) + evaluation_seconds
    if learning < whole / 2:
        announce(
            f"held-out texts take about {format_percent(1 - learning / whole)} of"
            f" {whole / 60:,.1f} minutes;"
            " fewer of them, or fewer --eval-examples, leave more time for training"
        )


def count_epoch_steps(order: TokenBatchOrder, epochs: float) -> int:
    """Return the number of steps in some epochs, which may be fractional."""
    whole = int(epochs)
    part = round((epochs - whole) * order.steps_per_epoch(whole)) if epochs > whole else 0
    return max(1, order.first_step(whole) + part)


def count_epochs(order: TokenBatchOrder, num_steps: int) -> float:
    """Return the number of epochs, possibly fractional, in some steps."""
    epoch = order.epoch_of(num_steps)
    return epoch + (num_steps - order.first_step(epoch)) / order.steps_per_epoch(epoch)


def choose_schedule(settings: Seq2SeqSettings, num_steps: int) -> Seq2SeqSettings:
    """Return the settings with `eval_every` set."""
    interval = settings.eval_every or -(-num_steps // NUM_EVALUATIONS)
    return settings.model_copy(update={"eval_every": interval})


def list_averaged(settings: Seq2SeqSettings, num_steps: int, step: int) -> tuple[int, ...]:
    """List the last evaluated steps, which are averaged if the run ends after `step`."""
    assert settings.eval_every is not None, "eval_every is set"
    if settings.average == 1:
        return ()
    interval = settings.eval_every
    newest = [*range(step - step % interval, 0, -interval)[: settings.average]]
    if step == num_steps and step % interval:
        newest = [step, *newest][: settings.average]
    return tuple(reversed(newest))


TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 65536}  # in evaluations
GREEDY = DecodingSettings()


@dataclass(frozen=True)
class InitialModel:
    """A model and its tokenizer before the first step of this process, on the CPU."""

    tokenizer: Tokenizer  # of both sides
    model: EncoderDecoderModel
    facts: Mapping[
        str, str | dict[str, str] | None
    ]  # identity of the initial checkpoint; empty if the weights are random


class Seq2SeqJob(Job[PairBatch]):
    """Training encoder and decoder on pairs of texts."""

    settings: Seq2SeqSettings
    example_names = "pairs"

    def __init__(
        self,
        data: PairData,
        initial: InitialModel,
        saved: Seq2SeqSettingsFile,  # with the model: kind, decoding, spacing and maximum lengths
        machine: Machine,
        settings: Seq2SeqSettings,
    ) -> None:
        self.settings, self.machine, self.data, self.saved = settings, machine, data, saved
        self.tokenizer, self.source = initial.tokenizer, dict(initial.facts)
        leaves_out = settings.long_texts == "leave_out"
        self.train = data.train.encode(self.tokenizer, settings, leaves_out=leaves_out)
        self.dev = data.dev.encode(self.tokenizer, settings)
        self.model = initial.model.to(machine.device)
        self.order = TokenBatchOrder(self.train.lengths, settings.tokens_per_batch, settings.seed)
        self.num_micro_batches = settings.accumulate
        self.progress_metrics = {"word_accuracy": "next word"}
        is_by_metric = settings.metric == "auto"
        self.watched = Watched(
            self.writing_metrics.best_by if is_by_metric else "loss",
            is_higher_better=is_by_metric,
            patience=settings.patience,
            is_tie_by_loss=True,  # a metric of texts is often the same again
        )
        self.num_steps: int | None = None  # once it is known

    @property
    def writing_metrics(self) -> WritingMetrics:
        """How generated texts are scored."""
        return WRITING_METRICS[self.saved.kind]

    def schedule(self, num_steps: int) -> None:
        """Set how often the run evaluates, for the number of steps that was planned at first."""
        self.settings, self.num_steps = choose_schedule(self.settings, num_steps), num_steps

    def set_num_steps(self, num_steps: int, phase_step: int | None) -> None:
        """Set the number of steps, after which the last weights are averaged."""
        self.num_steps = num_steps

    @cached_property
    def max_steps(self) -> int | None:  # type: ignore[override]
        """The most epochs of a run without a budget of its own."""
        return None if self.settings.minutes else count_epoch_steps(self.order, MOST_EPOCHS)

    def examples_at(self, step: int) -> list[int]:
        """Return the numbers of a step's pairs."""
        numbers: list[int] = self.order.examples(step).tolist()
        return numbers

    def collate(self, examples: Sequence[int]) -> PairBatch:
        """Build the batch of the pairs with these numbers."""
        return PairBatch.of(self.train, np.array(examples))

    def loss(self, model: EncoderDecoderModel, batch: PairBatch) -> Scores:
        """Return the loss of the target tokens, with label smoothing."""
        return score(model, batch, self.settings.label_smoothing)

    def evaluate(self) -> dict[str, float]:
        """Return the loss on held-out pairs, and metrics of texts that are generated greedily."""
        written = self.generate_held_out(GREEDY, self.settings.eval_examples)
        return {**self.measure_loss(), **self.measure(written)}

    def measure_loss(self) -> dict[str, float]:
        """Measure loss, accuracy and perplexity on all held-out references, without smoothing."""
        device = self.machine.device
        batches = [
            PairBatch.of(self.dev, np.array(numbers))
            for numbers in plan_batches(self.dev.lengths.tolist(), TOKENS_PER_BATCH[device.type])
        ]
        metrics = evaluate_batches(self.model, batches, score, device)
        return {**metrics, "word_perplexity": find_perplexity(metrics["word_loss"])}

    def build_generator(self, decoding: DecodingSettings) -> Seq2SeqGenerator:
        """Build what generates texts with the weights as they are."""
        return Seq2SeqGenerator(self.model.eval(), self.tokenizer, self.saved, decoding)

    def generate_held_out(
        self, decoding: DecodingSettings, num_pairs: int | None = None
    ) -> list[str]:
        """Generate hypotheses for the first `num_pairs` held-out sources, or for all."""
        texts = self.data.dev.sources[:num_pairs]
        return [answer.text for answer in self.build_generator(decoding).stream(texts)]

    def measure(self, written: Sequence[str]) -> dict[str, float]:
        """Measure hypotheses for the first held-out sources."""
        return self.writing_metrics.measure(written, self.data.dev.targets[: len(written)])

    def count_operations(self, batch: PairBatch) -> float:
        """Return the operations of encoder and decoder."""
        return float(self.model.count_operations(batch.source, batch.target))

    def save_rest(self, folder: Path) -> dict[str, FileRecord]:
        """Write the tokenizer, with the maximum source length, and settings of generation."""
        return {
            **self.tokenizer.save(folder, max_length=self.saved.max_source_length),
            **write_seq2seq_file(folder, self.saved),
        }

    def needed_steps(self, step: int) -> tuple[int, ...]:
        """Return the steps whose weights are averaged."""
        if self.num_steps is None:
            return ()
        return list_averaged(self.settings, self.num_steps, step)


def score(model: EncoderDecoderModel, batch: PairBatch, smoothing: float = 0.0) -> Scores:
    """Compute loss and number of correct predictions, summed over the target tokens of a batch."""
    loss, num_hits = model.next_loss(batch.source, batch.target, batch.labels, smoothing)
    return Scores({"word": loss}, {"word": num_hits})
