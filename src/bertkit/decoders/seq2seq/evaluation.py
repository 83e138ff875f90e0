"""Select the final weights (best or averaged), and evaluate them on the held-out pairs."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.base.progress import announce, show_progress
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.decoders.generation.seq2seq_generator import GeneratedText, GenerationCounts
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq.examples import warn_of_ends, warn_of_letters, warn_of_metric
from bertkit.decoders.seq2seq.job import Seq2SeqJob
from bertkit.reports.text import format_metric
from bertkit.tokenization.words import count_words, cut_words
from bertkit.training.lifecycle import load_checkpoint
from bertkit.training.loop import is_better
from bertkit.training.optimizer import average_weights
from bertkit.training.record import RunState
from bertkit.training.run import Run

SAMPLED_TEXTS = {"cpu": 32, "cuda": 1024}  # about a batch
RIGHT_CHARS = 200  # of a reference: enough to tell whether a metric can score it at all


@dataclass(frozen=True)
class CheckpointChoice:
    """The weights selected for the final model."""

    job: Seq2SeqJob  # with these weights
    best_step: int
    averaged_steps: tuple[int, ...] = ()  # empty if the weights are the best step's
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seq2SeqEvaluation:
    """The final evaluation of a model."""

    answers: list[GeneratedText]
    metrics: dict[str, float]  # and the loss on the references
    baseline: dict[str, float]  # of copying the beginning of each source
    signatures: dict[str, str]
    warnings: tuple[str, ...]


def choose_weights(job: Seq2SeqJob, run: Run, state: RunState) -> CheckpointChoice:
    """Select the best step's weights, or the mean of the last ones if available and better."""
    best_step, steps = state.model_step, tuple(job.needed_steps(state.step))
    best = load_checkpoint(job, run, best_step)
    if len(steps) < 2:
        return CheckpointChoice(best, best_step)
    try:
        averaged = average(best, run, steps)
    except (MissingFileError, DamagedFileError) as error:
        announce(
            f"{error}; without it, no weights are averaged and the best step becomes the model"
        )
        warning = "a checkpoint to be averaged is missing; the model is that of the best step"
        return CheckpointChoice(best, best_step, warnings=(warning,))
    with job.machine.mixed_precision():
        metrics = averaged.evaluate()
    watched, single = job.watched, state.best_metric
    assert watched is not None
    is_mean = is_better(watched, metrics, state)
    announce(
        f"the mean of {len(steps)} checkpoints has {watched.metric}"
        f" {format_metric(watched.metric, metrics[watched.metric])},"
        f" and the best one {format_metric(watched.metric, single)}:"
        f" {'the mean' if is_mean else 'the best one'} becomes the model"
    )
    return (
        CheckpointChoice(averaged, best_step, steps)
        if is_mean
        else CheckpointChoice(best, best_step)
    )


def average(job: Seq2SeqJob, run: Run, steps: Sequence[int]) -> Seq2SeqJob:
    """Return the job with the mean of the weights after some steps."""
    paths = [checkpoint_path(run.folder, step) for step in steps]
    mean = average_weights(EncoderDecoderModel.from_pretrained(path).state_dict() for path in paths)
    averaged = copy.copy(job)
    averaged.model = copy.deepcopy(job.model)
    averaged.model.load_state_dict(mean)
    return averaged


def evaluate_generation(job: Seq2SeqJob) -> Seq2SeqEvaluation:
    """Evaluate a model on the held-out pairs, with its default decoding settings, in float32."""
    counts, scored = GenerationCounts(), job.writing_metrics
    generator, sources, answers = job.build_generator(job.saved.decoding), job.data.dev.sources, []
    with show_progress("generating held-out texts", len(sources)) as bar:
        for answer in generator.stream(sources, counts=counts):
            answers.append(answer)
            bar.advance(1)
    metrics = {**job.measure([each.text for each in answers]), **job.measure_loss()}
    baseline = job.measure(copy_beginnings(job))
    signatures = scored.describe(len(answers))
    beginnings = [text[:RIGHT_CHARS] for text in job.data.dev.targets]
    warnings = (
        *warn_of_metric(
            scored.best_by, metrics, baseline, partial(scored.measure, beginnings, beginnings)
        ),
        *warn_of_ends(counts),
        *warn_of_letters(job.tokenizer.settings, job.data.dev.targets),
    )
    del metrics["loss"]  # same as "word_loss"
    return Seq2SeqEvaluation(answers, metrics, baseline, signatures, warnings)


def estimate_evaluation_seconds(job: Seq2SeqJob) -> float:
    """Estimate the seconds of `evaluate_generation` from a sample, rather too many than too few."""
    num_texts = len(job.data.dev.examples)
    num_sampled = min(SAMPLED_TEXTS[job.machine.device.type], num_texts)
    started = time.monotonic()
    job.generate_held_out(job.saved.decoding, num_sampled)
    return (time.monotonic() - started) * num_texts / num_sampled


def copy_beginnings(job: Seq2SeqJob) -> list[str]:
    """Return the first words of each source, as many as a mean reference has, as a baseline."""
    targets = job.data.train.targets
    mean = round(sum(map(count_words, targets)) / len(targets))
    # Limited, because the time of ROUGE grows with the product of both lengths.
    num_words = min(mean, job.saved.max_target_length)
    return [cut_words(text, num_words) for text in job.data.dev.sources]
