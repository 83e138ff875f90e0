"""Solves the head's last linear layer on a frozen encoder, instead of training it by steps.

The losses of all tasks are convex in that layer, so L-BFGS finds its optimum in seconds. It reads
features of mean 0 and variance 1; the scaling then goes into its weights. The L2 penalty is chosen
by cross-validation on the training examples.

Source: Liu and Nocedal 1989, "On the limited memory BFGS method".
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.base.errors import NonFiniteError
from bertkit.base.files import make_folder, remove_folder
from bertkit.base.progress import announce, show_progress
from bertkit.recipes.finetune.frozen.state_file import StateFile, write_states
from bertkit.recipes.finetune.job import FineTuningContext
from bertkit.tasks.batch import TaskBatch

SUMMARIES_FOLDER = "summaries"
PENALTIES = (10.0, 1.0, 0.1, 0.01, 0.001)  # of the mean loss; each starts from the one before
NUM_FOLDS = 5
FOLDS_FOR_ALL = 2_000  # with more examples, one fold is held out instead of each in turn
ROWS_PER_PART = 65_536
MAX_ITERATIONS = 100
LEAST_DEVIATION = 1e-6  # of a feature; one that doesn't vary isn't scaled up


@dataclass(frozen=True)
class Part:
    """Some training examples: what the layer reads of them, and their labels.

    Attributes:
        rows: indexes of their rows in the file.
        batch: their labels.
    """

    rows: npt.NDArray[np.int64]
    batch: TaskBatch


@dataclass(frozen=True)
class Solution:
    """The layer for one penalty.

    Attributes:
        weight: its weights, for scaled features.
        bias: its bias.
    """

    weight: Tensor
    bias: Tensor


class HeadSolver:
    """The training examples of a run, and the layer to solve.

    Args:
        context: the run's context; its model gets the solution.
        states: what the layer reads of the training examples.
        seed: orders the examples into folds.
    """

    def __init__(self, context: FineTuningContext, states: StateFile, seed: int) -> None:
        self.context, self.states = context, states
        self.model = context.model
        self.device = context.machine.device
        order = np.random.default_rng(seed).permutation(len(context.train)).tolist()
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
        num_folds = len(self.folds) if len(self.context.train) <= FOLDS_FOR_ALL else 1
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
        return min(PENALTIES, key=lambda penalty: _rank(totals[penalty]))

    def _cut(self, numbers: Sequence[int]) -> list[Part]:
        """Return parts with the examples of these numbers, of a bounded number of rows each."""
        context = self.context
        num_rows = len(self.states.find_rows(numbers)) if numbers else 0
        num_parts = math.ceil(num_rows / ROWS_PER_PART)
        parts = []
        for index in range(num_parts):
            if chosen := numbers[index::num_parts]:
                batch = TaskBatch.collate([context.train[number] for number in chosen], chosen)
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
        task = self.context.task
        scores = task.loss(logits[:, 0] if task.sequence == "choice" else logits, part.batch)
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


def _rank(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def solve_head(run: Path, context: FineTuningContext, seed: int) -> None:
    """Solve the last linear layer of the head for the training examples.

    Args:
        run: the run's folder, for the file of features, which is removed at the end.
        context: the run's context; its model gets the layer.
        seed: orders the examples into folds.

    Raises:
        NonFiniteError: the features aren't finite.
        StorageError: the disk doesn't have enough space for the file.
    """
    folder = run / SUMMARIES_FOLDER
    remove_folder(folder)  # left by a killed process
    make_folder(folder)
    try:
        states = write_states(
            folder / "train", context.model, context.train, context.machine, summarized=True
        )
        started = time.monotonic()
        penalty = HeadSolver(context, states, seed).solve()
    finally:
        remove_folder(folder)
    announce(
        f"solved the head in {time.monotonic() - started:.1f} s (L2 penalty {penalty:g}, chosen by"
        " cross-validation on the training examples)"
    )
