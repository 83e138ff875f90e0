"""The finished model: the best weights or their mean, and what they write of held-out texts."""

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
RIGHT_CHARS = 200  # of a right text: enough to tell whether a metric sees anything in it


@dataclass(frozen=True)
class Choice:
    """The weights that become the model.

    Attributes:
        materials: with them.
        best_step: the best single step.
        averaged_steps: the steps whose mean they are; empty where they are the best step's.
        warnings: what is odd.
    """

    materials: Seq2SeqContext
    best_step: int
    averaged_steps: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seq2SeqEvaluation:
    """What a model is worth.

    Attributes:
        answers: to the held-out texts.
        metrics: of those, and the loss of the right texts.
        baseline: metrics of the beginnings of what is read.
        signatures: how the metrics were computed.
        warnings: what is odd.
    """

    answers: list[GeneratedText]
    metrics: dict[str, float]
    baseline: dict[str, float]
    signatures: dict[str, str]
    warnings: tuple[str, ...]


def choose_weights(
    run: Run, materials: Seq2SeqContext, state: RunState, settings: Seq2SeqSettings, num_steps: int
) -> Choice:
    """The best step's weights, or the mean of the last ones where that can be had and is better."""
    best_step = state.best_step or state.step
    best = load_checkpoint(run, best_step, materials)
    steps = list_averaged(settings, num_steps, state.step)
    if len(steps) < 2:
        return Choice(best, best_step)
    try:
        averaged = average(run, steps, best)
    except (MissingFileError, DamagedFileError) as error:
        announce(f"{error}; without it nothing is averaged, and the best step becomes the model")
        warning = (
            "a checkpoint that was to be averaged was lost; the model is that of the best step"
        )
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
    """The same with the mean of the weights after some steps."""
    paths = [checkpoint_path(run.folder, step) for step in steps]
    mean = average_weights(EncoderDecoderModel.from_pretrained(path).state_dict() for path in paths)
    model = copy.deepcopy(materials.model)
    model.load_state_dict(mean)
    return replace(materials, model=model)


def judge(materials: Seq2SeqContext) -> Seq2SeqEvaluation:
    """Hold a model against its held-out pairs; it writes as it will by itself, in float32."""
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
    del metrics["loss"]  # it is that of words, which is there under its own name
    return Seq2SeqEvaluation(answers, metrics, baseline, signatures, warnings)


def measure_judging(materials: Seq2SeqContext) -> float:
    """Seconds that `judge` will take, from some of the texts.

    It is rather too much: a model that has learned nothing doesn't end its answers.
    """
    num_texts = len(materials.data.dev.pairs)
    num_sampled = min(SAMPLED_TEXTS[materials.machine.device.type], num_texts)
    started = time.monotonic()
    write_held_out(materials, materials.saved.decoding, num_sampled)
    return (time.monotonic() - started) * num_texts / num_sampled


def write_all(
    materials: Seq2SeqContext, decoding: DecodingSettings, counts: GenerationCounts
) -> list[GeneratedText]:
    """What the model writes of all held-out texts."""
    rewriter = Seq2SeqGenerator(materials.model.eval(), materials.tokenizer, materials.saved)
    sources, answers = materials.data.dev.sources, []
    with show_progress("writing of held-out texts", len(sources)) as bar:
        for answer in rewriter.stream(sources, decoding, counts):
            answers.append(answer)
            bar.advance(1)
    return answers


def copy_beginnings(materials: Seq2SeqContext) -> list[str]:
    """What a program writes that only copies: as many words as a right answer has on average.

    But no more than the model may write tokens: ROUGE takes as long as both lengths' product.
    """
    targets = materials.data.train.targets
    mean = round(sum(map(count_words, targets)) / len(targets))
    num_words = min(mean, materials.saved.max_target_length)
    return [cut_words(text, num_words) for text in materials.data.dev.sources]


def measure_right(materials: Seq2SeqContext) -> dict[str, float]:
    """Metrics of the right texts' beginnings against themselves."""
    texts = [text[:RIGHT_CHARS] for text in materials.data.dev.targets]
    return materials.kind.load_measure()(texts, texts)
