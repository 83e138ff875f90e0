"""Select the final weights (best or averaged), generate texts, and score them."""

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from bertkit.base.errors import DamagedFileError, InputError, MissingFileError, pluralize
from bertkit.base.progress import ProgressBar, announce, show_progress
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.data.problems import check_unknown
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import TextTable, open_texts
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.generation.seq2seq_generator import (
    GeneratedText,
    GenerationCounts,
    Seq2SeqGenerator,
)
from bertkit.decoders.metrics import WRITING_METRICS
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq.examples import warn_of_ends, warn_of_letters, warn_of_metric
from bertkit.decoders.seq2seq.job import Seq2SeqJob
from bertkit.reports.text import format_metric
from bertkit.tokenization.words import count_words, cut_words
from bertkit.training.lifecycle import load_checkpoint
from bertkit.training.loop import is_better
from bertkit.training.optimizer import average_weights
from bertkit.training.run import Run, RunState


@dataclass
class GeneratedTexts:
    """Generated texts, as an iterator that can be read once."""

    generator: Seq2SeqGenerator
    texts: Iterable[str] | TextTable
    counts: GenerationCounts = field(default_factory=GenerationCounts)
    elapsed_seconds: float = 0.0  # without loading the model; 0 until all texts are generated

    def read(self, progress: ProgressBar | None = None) -> Iterator[GeneratedText]:
        """Yield the generated texts; `progress` advances by the bytes of each row of a file."""
        started = time.monotonic()
        texts = self._read_rows(progress) if isinstance(self.texts, TextTable) else self.texts
        yield from self.generator.stream(texts, counts=self.counts)
        self.elapsed_seconds = time.monotonic() - started
        check_unknown("the input", self.counts.unknown_tokens, self.counts.text_tokens)

    def _read_rows(self, progress: ProgressBar | None) -> Iterator[str]:
        assert isinstance(self.texts, TextTable)
        for row in self.texts.rows():
            yield row.text
            if progress is not None:
                progress.advance(row.num_bytes)


@dataclass(frozen=True)
class Scoring:
    """Scores of hypotheses against references."""

    num_texts: int
    metrics: dict[str, float]
    signatures: dict[str, str]  # how the metrics were computed


def read_references(
    kind: str, path: Path, settings: TableSettings, texts: Sequence[str] | TextTable
) -> list[str]:
    """Read the references, one per row, and check that they can be compared with the texts."""
    WRITING_METRICS[kind].measure([""], [""])  # fail now, not after hours of generation
    right = open_texts(path, settings)
    if isinstance(texts, TextTable):
        check_apart(texts, right)
    references = [row.text for row in right.rows()]
    num_texts = count_texts(texts)
    if num_texts is not None:
        check_numbers(num_texts, len(references))
    return references


def check_apart(texts: TextTable, right: TextTable) -> None:
    """Check that texts and references differ, and that both can be read."""
    if texts.path is None and right.path is None:
        raise InputError("texts and references can't both be standard input; name a file of one")
    one, other = texts.path, right.path
    is_same = one == other
    if isinstance(one, Path) and isinstance(other, Path):
        is_same = one.samefile(other)
    if one is None or not is_same:
        return
    are_named = texts.text_column is not None and right.text_column is not None
    if texts.format == "text" or not are_named or texts.text_column == right.text_column:
        raise InputError(
            f"{right.name} can't hold texts and references in the same column; name another file"
            f" with --references, or both columns with --text-column and --reference-column"
        )


def count_texts(texts: Sequence[str] | TextTable) -> int | None:
    """Return the number of texts; None if they can be read only once, as from a pipe."""
    if not isinstance(texts, TextTable):
        return len(texts)
    return None if texts.size_bytes is None else sum(1 for _ in texts.rows())


def check_numbers(num_texts: int, num_references: int) -> None:
    """Check that each text has a reference."""
    if num_texts != num_references or not num_texts:
        raise InputError(
            f"expected a reference for each text, got {pluralize(num_texts, 'text')} and"
            f" {pluralize(num_references, 'reference')}; row n of one must belong to row n of the"
            " other"
        )


def score_texts(kind: str, answers: Iterable[GeneratedText], references: list[str]) -> Scoring:
    """Score hypotheses against references."""
    texts = [answer.text for answer in islice(answers, len(references) + 1)]
    check_numbers(len(texts), len(references))
    found = WRITING_METRICS[kind]
    return Scoring(len(texts), found.measure(texts, references), found.describe(len(texts)))


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


def evaluate_model(job: Seq2SeqJob) -> Seq2SeqEvaluation:
    """Evaluate a model on the held-out pairs, with its default decoding settings, in float32."""
    counts, scored = GenerationCounts(), job.writing_metrics
    answers = write_all(job, job.saved.decoding, counts)
    metrics = {**job.measure([each.text for each in answers]), **job.measure_loss()}
    baseline = job.measure(copy_beginnings(job))
    signatures = scored.describe(len(answers))
    warnings = (
        *warn_of_metric(
            job.writing_metrics.best_by, metrics, baseline, partial(measure_right, job)
        ),
        *warn_of_ends(counts),
        *warn_of_letters(job.tokenizer.settings, job.data.dev.targets),
    )
    del metrics["loss"]  # same as "word_loss"
    return Seq2SeqEvaluation(answers, metrics, baseline, signatures, warnings)


def estimate_evaluation_seconds(job: Seq2SeqJob) -> float:
    """Estimate the seconds of `evaluate_model` from a sample, rather too many than too few."""
    num_texts = len(job.data.dev.pairs)
    num_sampled = min(SAMPLED_TEXTS[job.machine.device.type], num_texts)
    started = time.monotonic()
    job.generate_held_out(job.saved.decoding, num_sampled)
    return (time.monotonic() - started) * num_texts / num_sampled


def write_all(
    job: Seq2SeqJob, decoding: DecodingSettings, counts: GenerationCounts
) -> list[GeneratedText]:
    """Generate hypotheses for all held-out sources."""
    generator = job.build_generator(decoding)
    sources, answers = job.data.dev.sources, []
    with show_progress("generating held-out texts", len(sources)) as bar:
        for answer in generator.stream(sources, counts=counts):
            answers.append(answer)
            bar.advance(1)
    return answers


def copy_beginnings(job: Seq2SeqJob) -> list[str]:
    """Return the first words of each source, as many as a mean reference has, as a baseline."""
    targets = job.data.train.targets
    mean = round(sum(map(count_words, targets)) / len(targets))
    # Limited, because the time of ROUGE grows with the product of both lengths.
    num_words = min(mean, job.saved.max_target_length)
    return [cut_words(text, num_words) for text in job.data.dev.sources]


def measure_right(job: Seq2SeqJob) -> dict[str, float]:
    """Score the beginnings of the references against the references."""
    texts = [text[:RIGHT_CHARS] for text in job.data.dev.targets]
    return job.writing_metrics.measure(texts, texts)
