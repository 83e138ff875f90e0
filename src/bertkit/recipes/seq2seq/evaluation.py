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
from bertkit.recipes.seq2seq.warnings import doubt_ends, doubt_metric, warn_of_letters
from bertkit.training.averaging import average_weights
from bertkit.training.run import Run, RunState
from bertkit.training.watching import is_better

SAMPLED_TEXTS = {"cpu": 32, "cuda": 1024}  # about a batch
RIGHT_CHARS = 200  # of a reference: enough to tell whether a metric can score it at all


@dataclass(frozen=True)
class Choice:
    """The weights selected for the final model.

    Attributes:
        materials: the run's context, with these weights.
        best_step: the best single step.
        averaged_steps: the averaged steps; empty if the weights are the best step's.
        warnings: warnings for the report and the card.
    """

    materials: Seq2SeqContext
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
    run: Run, materials: Seq2SeqContext, state: RunState, settings: Seq2SeqSettings, num_steps: int
) -> Choice:
    """Select the best step's weights, or the mean of the last ones if available and better."""
    best_step = state.best_step or state.step
    best = load_checkpoint(run, best_step, materials)
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
    with mixed_precision(materials.machine.device, materials.machine.precision):
        metrics = evaluate(averaged, settings)
    watched, single = watch(materials.kind, settings), state.best_metric
    is_mean = is_better(watched, metrics, state)
    announce(
        f"the mean of {len(steps)} checkpoints has {watched.metric} {metrics[watched.metric]:.4f},"
        f" and the best one {'none' if single is None else f'{single:.4f}'}:"
        f" {'the mean' if is_mean else 'the best one'} becomes the model"
    )
    return Choice(averaged, best_step, steps) if is_mean else Choice(best, best_step)


def average(run: Run, steps: Sequence[int], materials: Seq2SeqContext) -> Seq2SeqContext:
    """Return the context with the mean of the weights after some steps."""
    paths = [checkpoint_path(run.folder, step) for step in steps]
    mean = average_weights(EncoderDecoderModel.from_pretrained(path).state_dict() for path in paths)
    model = copy.deepcopy(materials.model)
    model.load_state_dict(mean)
    return replace(materials, model=model)


def judge(materials: Seq2SeqContext) -> Seq2SeqEvaluation:
    """Evaluate a model on the held-out pairs, with its default decoding settings, in float32."""
    counts = GenerationCounts()
    answers = write_all(materials, materials.saved.decoding, counts)
    metrics = {**measure(materials, [each.text for each in answers]), **measure_loss(materials)}
    baseline = measure(materials, copy_beginnings(materials))
    signatures = load_address(materials.kind.signatures)(len(answers))
    warnings = (
        *doubt_metric(materials.kind.metric, metrics, baseline, partial(measure_right, materials)),
        *doubt_ends(counts),
        *warn_of_letters(materials.tokenizer.settings, materials.data.dev.targets),
    )
    del metrics["loss"]  # same as "word_loss"
    return Seq2SeqEvaluation(answers, metrics, baseline, signatures, warnings)


def measure_judging(materials: Seq2SeqContext) -> float:
    """Estimate the seconds that `judge` will take, from a sample of the texts.

    The estimate tends to be too high, because an untrained model doesn't end its hypotheses.
    """
    num_texts = len(materials.data.dev.pairs)
    num_sampled = min(SAMPLED_TEXTS[materials.machine.device.type], num_texts)
    started = time.monotonic()
    write_held_out(materials, materials.saved.decoding, num_sampled)
    return (time.monotonic() - started) * num_texts / num_sampled


def write_all(
    materials: Seq2SeqContext, decoding: DecodingSettings, counts: GenerationCounts
) -> list[GeneratedText]:
    """Generate hypotheses for all held-out sources."""
    rewriter = Seq2SeqGenerator(materials.model.eval(), materials.tokenizer, materials.saved)
    sources, answers = materials.data.dev.sources, []
    with show_progress("generating held-out texts", len(sources)) as bar:
        for answer in rewriter.stream(sources, decoding, counts):
            answers.append(answer)
            bar.advance(1)
    return answers


def copy_beginnings(materials: Seq2SeqContext) -> list[str]:
    """Return a copying baseline: the first words of each source, as many as a mean reference has.

    The number is limited by `max_target_length`, because the time of ROUGE grows with the product
    of both lengths.
    """
    targets = materials.data.train.targets
    mean = round(sum(map(count_words, targets)) / len(targets))
    num_words = min(mean, materials.saved.max_target_length)
    return [cut_words(text, num_words) for text in materials.data.dev.sources]


def measure_right(materials: Seq2SeqContext) -> dict[str, float]:
    """Measure the beginnings of the references against themselves."""
    texts = [text[:RIGHT_CHARS] for text in materials.data.dev.targets]
    return materials.kind.load_measure()(texts, texts)
