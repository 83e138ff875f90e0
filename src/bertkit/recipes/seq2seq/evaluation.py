"""Selects the final weights (best or averaged) and evaluates them on the held-out pairs."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.base.progress import announce, show_progress
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.decoding.settings import DecodingSettings
from bertkit.generation.seq2seq_generator import GeneratedText, GenerationCounts, Seq2SeqGenerator
from bertkit.hardware.device import mixed_precision
from bertkit.metrics.words import count_words, cut_words
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.recipes.seq2seq.job import (
    Seq2SeqContext,
    evaluate,
    load_checkpoint,
    measure,
    measure_loss,
    watch,
    write_held_out,
)
from bertkit.recipes.seq2seq.kinds import load_address
from bertkit.recipes.seq2seq.schedule import list_averaged
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.recipes.seq2seq.warnings import warn_of_ends, warn_of_letters, warn_of_metric
from bertkit.training.optimization.averaging import average_weights
from bertkit.training.run import Run, RunState
from bertkit.training.watching import is_better

SAMPLED_TEXTS = {"cpu": 32, "cuda": 1024}  # about a batch
RIGHT_CHARS = 200  # of a reference: enough to tell whether a metric can score it at all


@dataclass(frozen=True)
class Choice:
    """The weights selected for the final model.

    Attributes:
        context: the run's context, with these weights.
        best_step: the best single step.
        averaged_steps: the averaged steps; empty if the weights are the best step's.
        warnings: warnings for the report and the card.
    """

    context: Seq2SeqContext
    best_step: int
    averaged_steps: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seq2SeqEvaluation:
    """The final evaluation of a model.

    Attributes:
        answers: hypotheses for the held-out sources.
        metrics: their metrics, and the loss on the references.
        baseline: metrics of copying the beginning of each source.
        signatures: how the metrics were computed.
        warnings: warnings for the report and the card.
    """

    answers: list[GeneratedText]
    metrics: dict[str, float]
    baseline: dict[str, float]
    signatures: dict[str, str]
    warnings: tuple[str, ...]


def choose_weights(
    run: Run, context: Seq2SeqContext, state: RunState, settings: Seq2SeqSettings, num_steps: int
) -> Choice:
    """Select the best step's weights, or the mean of the last ones if available and better."""
    best_step = state.best_step or state.step
    best = load_checkpoint(run, best_step, context)
    steps = list_averaged(settings, num_steps, state.step)
    if len(steps) < 2:
        return Choice(best, best_step)
    try:
        averaged = average(run, steps, best)
    except (MissingFileError, DamagedFileError) as error:
        announce(
            f"{error}; without it, no weights are averaged and the best step becomes the model"
        )
        warning = "a checkpoint to be averaged is missing; the model is that of the best step"
        return Choice(best, best_step, warnings=(warning,))
    with mixed_precision(context.machine.device, context.machine.precision):
        metrics = evaluate(averaged, settings)
    watched, single = watch(context.kind, settings), state.best_metric
    is_mean = is_better(watched, metrics, state)
    announce(
        f"the mean of {len(steps)} checkpoints has {watched.metric} {metrics[watched.metric]:.4f},"
        f" and the best one {'none' if single is None else f'{single:.4f}'}:"
        f" {'the mean' if is_mean else 'the best one'} becomes the model"
    )
    return Choice(averaged, best_step, steps) if is_mean else Choice(best, best_step)


def average(run: Run, steps: Sequence[int], context: Seq2SeqContext) -> Seq2SeqContext:
    """Return the context with the mean of the weights after some steps."""
    paths = [checkpoint_path(run.folder, step) for step in steps]
    mean = average_weights(EncoderDecoderModel.from_pretrained(path).state_dict() for path in paths)
    model = copy.deepcopy(context.model)
    model.load_state_dict(mean)
    return replace(context, model=model)


def evaluate_model(context: Seq2SeqContext) -> Seq2SeqEvaluation:
    """Evaluate a model on the held-out pairs, with its default decoding settings, in float32."""
    counts = GenerationCounts()
    answers = write_all(context, context.saved.decoding, counts)
    metrics = {**measure(context, [each.text for each in answers]), **measure_loss(context)}
    baseline = measure(context, copy_beginnings(context))
    signatures = load_address(context.kind.signatures)(len(answers))
    warnings = (
        *warn_of_metric(context.kind.metric, metrics, baseline, partial(measure_right, context)),
        *warn_of_ends(counts),
        *warn_of_letters(context.tokenizer.settings, context.data.dev.targets),
    )
    del metrics["loss"]  # same as "word_loss"
    return Seq2SeqEvaluation(answers, metrics, baseline, signatures, warnings)


def estimate_evaluation_seconds(context: Seq2SeqContext) -> float:
    """Estimate the seconds that `evaluate_model` will take, from a sample of the texts.

    The estimate tends to be too high, because an untrained model doesn't end its hypotheses.
    """
    num_texts = len(context.data.dev.pairs)
    num_sampled = min(SAMPLED_TEXTS[context.machine.device.type], num_texts)
    started = time.monotonic()
    write_held_out(context, context.saved.decoding, num_sampled)
    return (time.monotonic() - started) * num_texts / num_sampled


def write_all(
    context: Seq2SeqContext, decoding: DecodingSettings, counts: GenerationCounts
) -> list[GeneratedText]:
    """Generate hypotheses for all held-out sources."""
    generator = Seq2SeqGenerator(context.model.eval(), context.tokenizer, context.saved)
    sources, answers = context.data.dev.sources, []
    with show_progress("generating held-out texts", len(sources)) as bar:
        for answer in generator.stream(sources, decoding, counts):
            answers.append(answer)
            bar.advance(1)
    return answers


def copy_beginnings(context: Seq2SeqContext) -> list[str]:
    """Return a copying baseline: the first words of each source, as many as a mean reference has.

    The number is limited by `max_target_length`, because the time of ROUGE grows with the product
    of both lengths.
    """
    targets = context.data.train.targets
    mean = round(sum(map(count_words, targets)) / len(targets))
    num_words = min(mean, context.saved.max_target_length)
    return [cut_words(text, num_words) for text in context.data.dev.sources]


def measure_right(context: Seq2SeqContext) -> dict[str, float]:
    """Measure the beginnings of the references against themselves."""
    texts = [text[:RIGHT_CHARS] for text in context.data.dev.targets]
    return context.kind.load_measure()(texts, texts)
