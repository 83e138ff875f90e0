"""Train only the head: cache what it reads of the examples, or solve its last linear layer.

The hidden states are computed once into a file that is read through a memory map. The file is a
cache: it is recomputed whenever training begins or resumes, and removed afterward.
"""

import math
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import NonFiniteError, StorageError, storage_errors
from bertkit.base.files import durable_file, make_folder, remove_folder
from bertkit.base.progress import announce, show_progress
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packing import PackedBatch, plan_batches
from bertkit.recipes.finetune.job import FineTuningJob
from bertkit.tasks.batch import Encoded, Logits, TaskBatch, TokenSequence, pack_sequences
from bertkit.training.job import Scores

TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}
FLOAT_BYTES = 4


@dataclass(frozen=True)
class StateFile:
    """Hidden states of the sequences of some examples."""

    rows: npt.NDArray[np.float32]  # in the order they were computed; memory-mapped
    sequences: Sequence[TokenSequence]  # of all examples; only the tokens that the head reads
    starts: npt.NDArray[np.int64]  # the row at which each sequence begins
    first_sequences: Sequence[int]  # of each example, then the number of all

    def read(self, numbers: Sequence[int]) -> tuple[Float[Tensor, "tokens features"], PackedBatch]:
        """Return the states of some examples and the batch of their tokens."""
        sequences = [self.sequences[index] for index in self._find_sequences(numbers)]
        return torch.from_numpy(self.rows[self.find_rows(numbers)]), pack_sequences(sequences)

    def find_rows(self, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the indexes of the rows of some examples."""
        return np.concatenate(
            [
                np.arange(self.starts[index], self.starts[index] + len(self.sequences[index].ids))
                for index in self._find_sequences(numbers)
            ]
        )

    def _find_sequences(self, numbers: Sequence[int]) -> list[int]:
        return [
            index
            for number in numbers
            for index in range(self.first_sequences[number], self.first_sequences[number + 1])
        ]


def write_states(
    path: Path, job: FineTuningJob, encoded: Sequence[Encoded], *, summarized: bool
) -> StateFile:
    """Compute hidden states; `summarized` keeps only what the head's last linear layer reads."""
    model, device = job.model.eval(), job.machine.device
    whole = [sequence for one in encoded for sequence in one.sequences]
    is_short = summarized and model.scored != "token"
    kept = [TokenSequence(one.ids[:1], one.segments[:1]) for one in whole] if is_short else whole
    width = (
        model.last_linear.in_features
        if summarized
        else model.config.hidden_size * len(model.head_layers)
    )
    num_rows = sum(len(sequence.ids) for sequence in kept)
    _check_room(path, num_rows * width * FLOAT_BYTES)
    starts, place = np.zeros(len(whole), dtype=np.int64), 0
    with (
        durable_file(path) as stream,
        show_progress(f"hidden states into {path.name}", len(whole)) as bar,
        torch.inference_mode(),
        job.machine.mixed_precision(),
    ):
        for chosen in plan_batches([len(one.ids) for one in whole], TOKENS_PER_BATCH[device.type]):
            batch = pack_sequences([whole[index] for index in chosen]).to(device)
            states = model.states(batch)
            states = model.summarize(states, batch) if summarized else states
            states = states.float().cpu()
            stream.write(states.contiguous().numpy().data.cast("B"))
            for index in chosen:
                starts[index] = place
                place += len(kept[index].ids)
            bar.advance(len(chosen))
    rows = np.memmap(path, dtype=np.float32, mode="r", shape=(num_rows, width))
    first_sequences = [0, *accumulate(len(one.sequences) for one in encoded)]
    return StateFile(rows, kept, starts, first_sequences)


def _check_room(path: Path, num_bytes: int) -> None:
    """Announce the file's size; raise `StorageError` if the disk doesn't have that much space."""
    with storage_errors(path.parent, "read"):
        free = shutil.disk_usage(path.parent).free
    if num_bytes > free:
        raise StorageError(
            f"{path} would have {num_bytes / 1e6:,.1f} MB of hidden states, and the disk has"
            f" {free / 1e6:,.1f} MB left; make room, or choose another --output, fewer examples or"
            " --feature-layers last"
        )
    announce(f"computing hidden states once: {num_bytes / 1e6:,.1f} MB in {path}")


STATES_FOLDER = "states"
EXAMPLES_AT_ONCE = 32  # batch size of an evaluation


class States(NamedTuple):
    """The hidden states of the training and the held-out examples."""

    train: StateFile
    dev: StateFile


@dataclass(frozen=True)
class StateBatch:
    """A batch of examples with their hidden states."""

    examples: TaskBatch
    states: Float[Tensor, "tokens features"]  # the head's input
    tokens: PackedBatch  # that the states belong to

    @property
    def num_tokens(self) -> int:
        """Number of tokens in the examples."""
        return self.examples.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of labels that the loss is summed over."""
        return self.examples.target_counts

    def describe(self) -> str:
        """Return the examples' numbers, for messages."""
        return self.examples.describe()

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""
        return replace(
            self,
            examples=self.examples.to(device),
            states=self.states.to(device),
            tokens=self.tokens.to(device),
        )


@contextmanager
def open_cache(folder: Path) -> Iterator[Path]:
    """Make a folder that is removed at the end."""
    remove_folder(folder)  # left by a killed process
    make_folder(folder)
    try:
        yield folder
    finally:
        remove_folder(folder)


class FeatureJob(FineTuningJob):
    """Training only the head; steps and evaluations within `caching` compute nothing else."""

    states: States | None = None

    @contextmanager
    def caching(self, folder: Path) -> Iterator[None]:
        """Compute the hidden states of all examples, in files that are removed at the end."""
        with open_cache(folder / STATES_FOLDER) as cache:
            train, dev = (
                write_states(cache / name, self, encoded, summarized=False)
                for name, encoded in (("train", self.train), ("dev", self.dev))
            )
            self.states = States(train, dev)
            try:
                yield
            finally:
                self.states = None

    def collate(self, examples: Sequence[int]) -> StateBatch:  # type: ignore[override]
        """Build the batch with its hidden states."""
        assert self.states is not None, "steps are taken within caching"
        return StateBatch(super().collate(examples), *self.states.train.read(examples))

    def loss(self, model: FineTunedBert, batch: StateBatch) -> Scores:  # type: ignore[override]
        """Return the task's loss of the head's scores."""
        return self.task.loss(model.head_scores(batch.states, batch.tokens), batch.examples)

    @torch.inference_mode()
    def held_out_logits(self, part: range) -> list[Logits]:
        """Compute logits of some held-out examples, from their hidden states if there are any."""
        if self.states is None:
            return super().held_out_logits(part)
        model, device = self.model.eval(), self.machine.device
        found: list[Logits] = []
        for start in range(0, len(part), EXAMPLES_AT_ONCE):
            numbers = part[start : start + EXAMPLES_AT_ONCE]
            chosen = [self.dev[number] for number in numbers]
            rows, tokens = self.states.dev.read(numbers)
            logits = model.head_scores(rows.to(device), tokens.to(device)).float().cpu().numpy()
            is_token = self.task.scored == "token"
            sizes = [one.num_tokens if is_token else len(one.sequences) for one in chosen]
            found += np.split(logits, list(accumulate(sizes))[:-1])
        return found

    def count_operations(self, batch: StateBatch) -> float:  # type: ignore[override]
        """Return the operations of the head."""
        num_trained: int = sum(
            each.numel() for each in self.model.parameters() if each.requires_grad
        )
        return 6.0 * num_trained * len(batch.states)


SUMMARIES_FOLDER = "summaries"
PENALTIES = (10.0, 1.0, 0.1, 0.01, 0.001)  # of the mean loss; each starts from the one before
NUM_FOLDS = 5
FOLDS_FOR_ALL = 2_000  # with more examples, one fold is held out instead of each in turn
ROWS_PER_PART = 65_536
MAX_ITERATIONS = 100
LEAST_DEVIATION = 1e-6  # of a feature; one that doesn't vary isn't scaled up


@dataclass(frozen=True)
class Part:
    """Some training examples: what the layer reads of them, and their labels."""

    rows: npt.NDArray[np.int64]  # their indexes in the file
    batch: TaskBatch


@dataclass(frozen=True)
class Solution:
    """The layer for one penalty."""

    weight: Tensor  # for scaled features
    bias: Tensor


class HeadSolver:
    """Solves the last linear layer of a head; the seed orders the training examples into folds."""

    def __init__(self, job: FineTuningJob, states: StateFile) -> None:
        self.job, self.states = job, states
        self.model = job.model
        self.device = job.machine.device
        order = np.random.default_rng(job.settings.seed).permutation(len(job.train)).tolist()
        self.folds = [fold for number in range(NUM_FOLDS) if (fold := order[number::NUM_FOLDS])]
        self.parts = self._cut(order)
        self.mean, self.deviation = self._measure_features()

    def solve(self) -> float:
        """Set the layer's weights; return the penalty that was chosen."""
        penalty = self._choose_penalty()
        solution = self._start()
        for each in PENALTIES:
            solution = self._minimize(solution, each, self.parts)
            if each == penalty:
                break
        weight, bias = self._unscale(solution)
        layer = self.model.last_linear
        with torch.no_grad():
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
        return penalty

    def _choose_penalty(self) -> float:
        """Return the penalty with the lowest loss of held-out folds."""
        num_folds = len(self.folds) if len(self.job.train) <= FOLDS_FOR_ALL else 1
        totals = dict.fromkeys(PENALTIES, 0.0)
        with show_progress("solving the head", num_folds * len(PENALTIES)) as bar:
            for held_out in range(num_folds):
                others = (fold for number, fold in enumerate(self.folds) if number != held_out)
                kept = self._cut(list(chain.from_iterable(others)))
                left_out = self._cut(self.folds[held_out])
                solution = self._start()
                for penalty in PENALTIES:
                    solution = self._minimize(solution, penalty, kept)
                    with torch.no_grad():
                        totals[penalty] += sum(
                            self._loss(solution, part).item() for part in left_out
                        )
                    bar.advance(1)
        finite = {each: total for each, total in totals.items() if math.isfinite(total)}
        return min(PENALTIES, key=lambda penalty: finite.get(penalty, math.inf))

    def _cut(self, numbers: Sequence[int]) -> list[Part]:
        """Return parts with the examples of these numbers, of a bounded number of rows each."""
        num_rows = len(self.states.find_rows(numbers)) if numbers else 0
        num_parts = math.ceil(num_rows / ROWS_PER_PART)
        parts = []
        for index in range(num_parts):
            if chosen := numbers[index::num_parts]:
                batch = TaskBatch.collate([self.job.train[number] for number in chosen], chosen)
                rows = self.states.find_rows(chosen)
                parts.append(Part(rows, batch.to(self.device)))
        return parts

    def _start(self) -> Solution:
        layer = self.model.last_linear
        return Solution(
            torch.zeros_like(layer.weight, dtype=torch.float32),
            torch.zeros_like(layer.bias, dtype=torch.float32),
        )

    def _minimize(self, start: Solution, penalty: float, parts: Sequence[Part]) -> Solution:
        """Minimize the mean loss plus penalty / 2 · ‖weights‖²."""
        weight = start.weight.clone().requires_grad_()
        bias = start.bias.clone().requires_grad_()
        solution = Solution(weight, bias)
        count = sum(part.batch.target_counts["task"] for part in parts)
        optimizer = torch.optim.LBFGS(
            [weight, bias],
            max_iter=MAX_ITERATIONS,
            tolerance_grad=1e-5,
            tolerance_change=1e-7,
            line_search_fn="strong_wolfe",
        )

        def evaluate() -> float:
            optimizer.zero_grad()
            total = 0.0
            for part in parts:
                loss = self._loss(solution, part) / count
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item()
            size = penalty / 2 * weight.square().sum()
            size.backward()  # type: ignore[no-untyped-call]
            return total + size.item()

        optimizer.step(evaluate)  # type: ignore[no-untyped-call]
        return Solution(weight.detach(), bias.detach())

    def _loss(self, solution: Solution, part: Part) -> Tensor:
        """Return the summed loss of a part."""
        rows = torch.from_numpy(self.states.rows[part.rows]).to(self.device)
        logits = F.linear(rows, *self._unscale(solution))
        task = self.job.task
        scores = task.loss(logits[:, 0] if task.scored == "choice" else logits, part.batch)
        return torch.stack(list(scores.losses.values())).sum()

    def _unscale(self, solution: Solution) -> tuple[Tensor, Tensor]:
        """Return weights and bias for features as they are."""
        weight = solution.weight / self.deviation
        return weight, solution.bias - weight @ self.mean

    def _measure_features(self) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of each feature."""
        total = squares = torch.zeros((), dtype=torch.float64)
        count = 0
        for part in self.parts:
            rows = torch.from_numpy(self.states.rows[part.rows]).double()
            total, squares = total + rows.sum(dim=0), squares + rows.square().sum(dim=0)
            count += len(rows)
        if not bool(squares.isfinite().all()):
            raise NonFiniteError(
                "the encoder's hidden states aren't finite; check the model with `bertkit inspect`"
            )
        mean = total / count
        deviation = (squares / count - mean.square()).clamp_min(0.0).sqrt()
        deviation = torch.where(deviation > LEAST_DEVIATION, deviation, 1.0)
        return mean.float().to(self.device), deviation.float().to(self.device)


def solve_head(run: Path, job: FineTuningJob) -> None:
    """Solve the head's last linear layer, with features in a file that is removed at the end."""
    with open_cache(run / SUMMARIES_FOLDER) as cache:
        states = write_states(cache / "train", job, job.train, summarized=True)
        started = time.monotonic()
        penalty = HeadSolver(job, states).solve()
    announce(
        f"solved the head in {time.monotonic() - started:.1f} s (L2 penalty {penalty:g}, chosen by"
        " cross-validation on the training examples)"
    )
