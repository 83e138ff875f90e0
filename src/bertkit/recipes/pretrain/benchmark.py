"""Measure how fast this machine pre-trains, and where the time of a step goes."""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from bertkit.base.errors import SettingsError, is_out_of_memory
from bertkit.base.progress import announce, show_progress
from bertkit.base.settings import validate
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.pretrain.run import Pretraining
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.settings import PrepareSettings
from bertkit.reports.notebook import Row, Tabular, show_rows
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.budget import drop_warm_up, measure_steps, peak_memory_bytes
from bertkit.training.device import synchronize
from bertkit.training.job import AnyBatch, Job, Machine
from bertkit.training.ranks import current_ranks, joined_ranks
from bertkit.training.replica import Replica

# Random text: words as frequent as Zipf's law says, about as many to a sentence and a document as
# Wikipedia has.
VOCAB_SIZE = 30_522
NUM_WORDS = 1_000_000
WORDS_PER_SENTENCE = 25
SENTENCES_PER_DOCUMENT = 20
LEAST_STEPS = 7  # of which four count

BATCHES, FORWARD, BACKWARD, OPTIMIZER = "batches", "forward", "backward", "optimizer"


@dataclass(frozen=True)
class LengthBenchmark(Tabular):
    """The speed at one maximum length; medians over steps."""

    max_length: int
    accumulate: int  # micro-batches per step; more than asked for if memory was short
    tokens_per_step: float  # without padding
    tokens_per_second: float
    quartiles: tuple[float, float]  # the first and third, of tokens per second
    share_of_peak: float | None  # None where the step is faster
    peak_memory_bytes: int  # of the process so far, or of the GPU at this length
    shares: dict[str, float]  # of a step's time, by its parts

    def as_row(self) -> Row:
        """Return the row with the shares."""
        return {**super().as_row(), **self.shares}


@dataclass(frozen=True)
class PretrainBenchmark:
    """The speed of pre-training on this machine."""

    num_parameters: int
    batch_size: int
    num_processes: int
    device: str
    precision: str
    rows: tuple[LengthBenchmark, ...]

    def _repr_html_(self) -> str:
        """Show the rows in a notebook."""
        return show_rows([row.as_row() for row in self.rows])


class StepClock:
    """Measures the parts of steps, each until the device has finished it.

    What is neither of the other parts is the backward pass: gradients and their norm.
    """

    def __init__(self, device: torch.device) -> None:
        self.steps: list[dict[str, float]] = [{}]
        self._device = device

    def time(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time added to a part of the step."""

        def call(*values: Any) -> Any:
            synchronize(self._device)
            began = time.monotonic()
            result = function(*values)
            synchronize(self._device)
            parts = self.steps[-1]
            parts[name] = parts.get(name, 0.0) + time.monotonic() - began
            return result

        return call

    def start_step(self) -> None:
        """Begin the next step."""
        self.steps.append({})


def benchmark(
    settings: PretrainSettings, lengths: Sequence[int] = (), data: Path | None = None
) -> PretrainBenchmark:
    """Measure steps at each maximum length, on the shards in `data` or on random text.

    A step that is too large for memory is measured in twice as many micro-batches, unless several
    processes share it.
    """
    if settings.start_from is not None:
        raise SettingsError(
            "--from has no effect on the speed; name a size or a config.json with --model"
        )
    chosen = [
        validate(
            PretrainSettings,
            {**dict(settings), "max_length": length, "long_length": None},
            f"length {length}",
        )
        for length in sorted({*(lengths or [settings.max_length, settings.longest])})
    ]
    shards = open_random_shards() if data is None else nullcontext(data)
    with joined_ranks() as ranks, shards as folder:
        recipes = [Pretraining(folder, each) for each in chosen]
        for recipe in recipes:
            recipe.open_data()
        machine = Machine.choose(settings, recipes[0].find_hidden_size)
        rows = tuple(measure_length(recipe, machine) for recipe in recipes)
        parameters = recipes[0].begin_model().parameters()
    return PretrainBenchmark(
        num_parameters=sum(each.numel() for each in parameters),
        batch_size=settings.batch_size,
        num_processes=ranks.count,
        device=str(machine.device),
        precision=machine.precision,
        rows=rows,
    )


@contextmanager
def open_random_shards() -> Iterator[Path]:
    """Prepare random text in a temporary folder, of the words that a vocabulary has."""
    words = np.array([f"w{number}" for number in range(VOCAB_SIZE - len(SPECIAL_TOKENS))])
    generator = np.random.default_rng(0)
    frequencies = 1.0 / np.arange(1, len(words) + 1)
    text = words[generator.choice(len(words), NUM_WORDS, p=frequencies / frequencies.sum())]
    ends = generator.geometric(1 / WORDS_PER_SENTENCE, NUM_WORDS // WORDS_PER_SENTENCE).cumsum()
    is_last = generator.random(len(ends)) < 1 / SENTENCES_PER_DOCUMENT
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        Tokenizer([*SPECIAL_TOKENS, *words.tolist()]).save(folder / "tokenizer")
        with (folder / "text.txt").open("w", encoding="utf-8") as stream:
            for start, end, last in zip([0, *ends[:-1]], ends, is_last, strict=True):
                stream.write(" ".join(text[start:end]) + ("\n\n" if last else "\n"))
        prepare(
            [str(folder / "text.txt")],
            folder / "tokenizer",
            folder / "shards",
            PrepareSettings(sentences="lines"),
        )
        yield folder / "shards"


def measure_length(recipe: Pretraining, machine: Machine) -> LengthBenchmark:
    """Measure steps in as few micro-batches as fit into memory."""
    while True:
        settings = recipe.settings
        try:
            return measure_recipe(recipe, machine)
        except Exception as error:
            accumulate = 2 * settings.accumulate
            is_alone = current_ranks().count == 1  # others wouldn't know of another attempt
            if not (is_alone and is_out_of_memory(error) and accumulate <= settings.batch_size):
                raise
        announce(f"length {settings.max_length}: out of memory; trying --accumulate {accumulate}")
        recipe.settings = settings.model_copy(update={"accumulate": accumulate})


def measure_recipe(recipe: Pretraining, machine: Machine) -> LengthBenchmark:
    """Measure steps twice: as fast as they are, and then with a clock at their parts."""
    settings = recipe.settings
    if machine.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(machine.device)
    job = recipe.open(None, machine)
    replica = Replica.build(job)
    with show_progress(f"Measuring steps of length {settings.max_length}", None) as progress:
        steps = measure_steps(
            job, replica, least=LEAST_STEPS, after_step=lambda: progress.advance(1)
        )
        memory = peak_memory_bytes(machine.device)
        shares = measure_shares(job, replica)
    counted = drop_warm_up(steps)
    rates = [step.num_tokens / step.seconds for step in counted]
    first, _, third = quantiles(rates, method="inclusive")
    return LengthBenchmark(
        max_length=settings.max_length,
        accumulate=settings.accumulate,
        tokens_per_step=median(step.num_tokens for step in counted),
        tokens_per_second=median(rates),
        quartiles=(first, third),
        share_of_peak=machine.share_of_peak(
            median(step.num_operations / step.seconds for step in counted) / replica.ranks.count
        ),
        peak_memory_bytes=memory,
        shares=shares,
    )


def measure_shares(job: Job[AnyBatch], replica: Replica[AnyBatch]) -> dict[str, float]:
    """Measure how the time of a step divides among its parts."""
    clock = StepClock(job.machine.device)
    watched = copy.copy(job)
    watched.collate = clock.time(BATCHES, job.collate)  # type: ignore[method-assign]
    scoring, optimizer = replica.scoring, replica.optimizer
    scoring.forward = clock.time(FORWARD, scoring.forward)
    optimizer.step = clock.time(OPTIMIZER, optimizer.step)  # type: ignore[method-assign]
    steps = measure_steps(watched, replica, after_step=clock.start_step)
    seconds = sum(step.seconds for step in drop_warm_up(steps))
    parts = drop_warm_up(clock.steps[: len(steps)])
    batches, forward, update = (
        sum(part[name] for part in parts) / seconds for name in (BATCHES, FORWARD, OPTIMIZER)
    )
    backward = 1.0 - batches - forward - update
    return {BATCHES: batches, FORWARD: forward, BACKWARD: backward, OPTIMIZER: update}
