"""Builds the training loop's job for pairs of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_json
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.decoding.settings import DecodingSettings
from bertkit.generation.seq2seq_file import Seq2SeqSettingsFile, write_seq2seq_file
from bertkit.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.metrics.perplexity import find_perplexity
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.batching import plan_batches
from bertkit.recipes.seq2seq.examples import Data, SetCounts
from bertkit.recipes.seq2seq.kinds import KINDS, Kind
from bertkit.recipes.seq2seq.schedule import list_averaged, order_pairs
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.recipes.seq2seq.token_pairs import PairBatch, TokenPairs, batch_tensors
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Job, Machine, Scores, Watched
from bertkit.training.lifecycle import find_checkpoint
from bertkit.training.run import Run
from bertkit.training.step import evaluate_batches

TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 65536}  # in evaluations
GREEDY = DecodingSettings()


@dataclass(frozen=True)
class Seq2SeqContext:
    """The model, data and device of a run.

    Attributes:
        model: the model to train, on its device.
        tokenizer: the tokenizer of both sides.
        saved: the settings saved with the model: kind, decoding, spacing and maximum lengths.
        data: the texts.
        train: training pairs as token ids.
        dev: held-out pairs as token ids.
        counts: counts of the sets `train` and `dev`.
        machine: the device to compute on.
    """

    model: EncoderDecoderModel
    tokenizer: Tokenizer
    saved: Seq2SeqSettingsFile
    data: Data
    train: TokenPairs
    dev: TokenPairs
    counts: Mapping[str, SetCounts]
    machine: Machine

    @property
    def kind(self) -> Kind:
        """The kind of task."""
        return KINDS[self.saved.kind]

    def save_tokenizer(self, folder: Path) -> dict[str, FileRecord]:
        """Write the tokenizer's files, with the maximum source length for other tools."""
        return self.tokenizer.save(folder, max_length=self.saved.max_source_length)


def build_job(context: Seq2SeqContext, settings: Seq2SeqSettings) -> Job[PairBatch]:
    """Build a job without checkpoints to average; `with_averages` adds them for training."""
    model = context.model
    order = order_pairs(context.train, settings)

    def batches_at(step: int) -> list[PairBatch]:
        numbers = order.examples(step)
        parts = np.array_split(numbers, min(settings.accumulate, len(numbers)))
        return [PairBatch.of(context.train, part) for part in parts]

    def save_rest(folder: Path) -> dict[str, FileRecord]:
        return {**context.save_tokenizer(folder), **write_seq2seq_file(folder, context.saved)}

    def save_model(folder: Path) -> dict[str, FileRecord]:
        return {**model.save_pretrained(folder), **save_rest(folder)}

    def save_architecture(folder: Path) -> dict[str, FileRecord]:
        config = write_json(folder / CONFIG_FILE, model.config.to_dict())
        return {CONFIG_FILE: config, **save_rest(folder)}

    return Job(
        model=model,
        batches_at=batches_at,
        score=partial(score, smoothing=settings.label_smoothing),
        evaluate=lambda: evaluate(context, settings),
        count_operations=lambda batch: model.count_operations(batch.source, batch.target),
        save_model=save_model,
        save_architecture=save_architecture,
        batch_tensors=batch_tensors,
        shares={"word_accuracy": "next word"},
        watched=watch(context.kind, settings),
        example_names="pairs",
    )


def watch(kind: Kind, settings: Seq2SeqSettings) -> Watched:
    """Return the metric that selects the best weights; the held-out loss breaks ties.

    Ties are common, because most metrics are 0 for short texts that are all wrong and for texts
    without spaces.
    """
    is_by_metric = settings.best_by == "metric"
    return Watched(
        kind.metric if is_by_metric else "loss",
        is_higher_better=is_by_metric,
        patience=settings.patience,
        is_tie_by_loss=True,
    )


def with_averages(job: Job[PairBatch], settings: Seq2SeqSettings, num_steps: int) -> Job[PairBatch]:
    """Return the job extended to write and keep the checkpoints that will be averaged.

    Args:
        job: the run's job.
        settings: the settings, with `eval_every` set.
        num_steps: steps of the whole run.
    """
    return replace(job, needed_steps=partial(list_averaged, settings, num_steps))


def score(model: EncoderDecoderModel, batch: PairBatch, smoothing: float = 0.0) -> Scores:
    """Compute loss and number of correct predictions, summed over the target tokens of a batch."""
    loss, num_hits = model.next_loss(batch.source, batch.target, batch.labels, smoothing)
    return Scores({"word": loss}, {"word": num_hits})


def evaluate(context: Seq2SeqContext, settings: Seq2SeqSettings) -> dict[str, float]:
    """Measure the held-out loss without smoothing, and metrics of greedy decoding on some texts."""
    written = write_held_out(context, GREEDY, settings.eval_pairs)
    return {**measure_loss(context), **measure(context, written)}


def measure_loss(context: Seq2SeqContext) -> dict[str, float]:
    """Measure loss, accuracy and perplexity on the references of all held-out pairs."""
    device = context.machine.device
    budget = TOKENS_PER_BATCH[device.type]
    batches = [
        PairBatch.of(context.dev, np.array(numbers))
        for numbers in plan_batches(context.dev.lengths.tolist(), budget)
    ]
    metrics = evaluate_batches(context.model, batches, score, device)
    return {**metrics, "word_perplexity": find_perplexity(metrics["word_loss"])}


def write_held_out(
    context: Seq2SeqContext, decoding: DecodingSettings, num_pairs: int | None = None
) -> list[str]:
    """Generate hypotheses for the first `num_pairs` held-out sources, or for all."""
    generator = Seq2SeqGenerator(context.model.eval(), context.tokenizer, context.saved)
    texts = context.data.dev.sources[:num_pairs]
    return [answer.text for answer in generator.stream(texts, decoding)]


def measure(context: Seq2SeqContext, written: Sequence[str]) -> dict[str, float]:
    """Measure hypotheses for the first held-out sources."""
    return context.kind.load_measure()(written, context.data.dev.targets[: len(written)])


def load_checkpoint(run: Run, step: int, context: Seq2SeqContext) -> Seq2SeqContext:
    """Return the context with the weights of a run's checkpoint."""
    model = EncoderDecoderModel.from_pretrained(find_checkpoint(run, step))
    return replace(context, model=model.to(context.machine.device))
