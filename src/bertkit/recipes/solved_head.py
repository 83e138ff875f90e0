"""Solve the last linear layer of a head on a frozen encoder, without training steps.

What the layer reads of the examples is computed once, into a file that is read through a memory map
and removed at the end. Cross-validation solves the layer once for each fold, from the same file.
"""

import math
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.base.errors import NonFiniteError, StorageError, storage_errors
from bertkit.base.files import durable_file, make_folder, remove_folder
from bertkit.base.progress import announce, show_progress
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packed_ids import plan_batches
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, Logits, pack_sequences
from bertkit.tasks.task import AnyTask, TaskExample
from bertkit.tasks.task_batch import TaskBatch
from bertkit.training.job import Machine

FLOAT_BYTES = 4
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}  # where no gradients are computed
SUMMARIES_FOLDER = "summaries"
PENALTIES = (10.0, 1.0, 0.1, 0.01, 0.001)  # of the mean loss; each starts from the one before
NUM_FOLDS = 5
FOLDS_FOR_ALL = 2_000  # with more examples, one fold is held out instead of each in turn
ROWS_FOR_ALL = 65_536  # the same for tokens
ROWS_PER_PART = 65_536
MAX_ITERATIONS = 100
MOST_KEPT_BYTES = 1 << 30  # of features in memory; more are read from the file each time
CURVATURE = 0.25  # of a loss, about: that of two labels which are equally likely
LEAST_DEVIATION = 1e-6  # of a feature; one that doesn't vary isn't scaled up


@dataclass(frozen=True)
class FrozenModel:
    """A model of which only the last linear layer is solved, and the labeled examples for it."""

    model: FineTunedBert
    task: AnyTask
    examples: Sequence[Encoded]
    machine: Machine
    seed: int  # orders the examples into folds


@dataclass(frozen=True)
class Features:
    """What the head's last linear layer reads of the training examples."""

    rows: npt.NDArray[np.float32]  # in the order they were computed; memory-mapped
    # of each example: the first row and the end of each of its sequences
    row_ranges: Sequence[Sequence[tuple[int, int]]]

    def find_rows(self, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the indexes of the rows of some examples."""
        ranges = (each for number in numbers for each in self.row_ranges[number])
        return np.concatenate([np.arange(*each) for each in ranges])


def write_features(path: Path, frozen: FrozenModel) -> Features:
    """Compute the features of the examples into a file."""
    model, device = frozen.model.eval(), frozen.machine.device
    sequences = [sequence for one in frozen.examples for sequence in one.sequences]
    is_token, width = model.scored == "token", model.last_linear.in_features
    num_rows = sum(len(each.ids) for each in sequences) if is_token else len(sequences)
    _check_room(path, num_rows * width * FLOAT_BYTES)
    found, end = [(0, 0)] * len(sequences), 0
    with (
        durable_file(path) as stream,
        show_progress("hidden states", len(sequences)) as bar,
        torch.inference_mode(),
        frozen.machine.mixed_precision(),
    ):
        lengths = [len(each.ids) for each in sequences]
        for chosen in plan_batches(lengths, TOKENS_PER_BATCH[device.type]):
            ids = pack_sequences([sequences[index] for index in chosen])
            batch = PackedBatch.of(ids).to(device)
            rows = model.summarize(model.states(batch), batch).float().cpu()
            stream.write(rows.contiguous().numpy().data.cast("B"))
            for index in chosen:
                start, end = end, end + (lengths[index] if is_token else 1)
                found[index] = start, end
            bar.advance(len(chosen))
    rows_of_file = np.memmap(path, dtype=np.float32, mode="r", shape=(num_rows, width))
    firsts = [0, *accumulate(len(one.sequences) for one in frozen.examples)]
    row_ranges = [found[first:stop] for first, stop in pairwise(firsts)]
    return Features(rows_of_file, row_ranges)


def _check_room(path: Path, num_bytes: int) -> None:
    """Raise `StorageError` if the disk doesn't have that much space."""
    with storage_errors(path.parent, "read"):
        free = shutil.disk_usage(path.parent).free
    if num_bytes > free:
        raise StorageError(
            f"{path} would have {num_bytes / 1e6:,.1f} MB of hidden states, and the disk has"
            f" {free / 1e6:,.1f} MB left; make room, or choose another --output, fewer examples or"
            " --features last"
        )


@dataclass(frozen=True)
class ExamplePart:
    """Some examples: what the layer reads of them, and their labels."""

    rows: Tensor | npt.NDArray[np.int64]  # kept in memory, or their indexes in the file
    batch: TaskBatch
    numbers: Sequence[int]  # of the examples


@dataclass(frozen=True)
class Solution:
    """The layer for one penalty."""

    weight: Tensor  # for scaled features
    bias: Tensor


class HeadSolver:
    """Solves the last linear layer of a head.

    Args:
        frozen: the model and its examples.
        features: what the layer reads of the examples.
        folds: the numbers of the examples in each fold; by default dealt at random.
    """

    def __init__(
        self,
        frozen: FrozenModel,
        features: Features,
        folds: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.frozen, self.features = frozen, features
        self.device = frozen.machine.device
        if folds is None:
            order = np.random.default_rng(frozen.seed).permutation(len(frozen.examples)).tolist()
            folds = [fold for number in range(NUM_FOLDS) if (fold := order[number::NUM_FOLDS])]
        self.folds = [self._cut(fold) for fold in folds]
        self.mean, self.deviation = self._measure_features()
        self.variances, self.directions = self._find_directions()

    def solve(self) -> float:
        """Set the layer's weights; return the penalty that was chosen."""
        penalty = self.choose_penalty()
        weight, bias = self._unscale(self._minimize(self._start(), penalty, self._list_parts()))
        layer = self.frozen.model.last_linear
        with torch.no_grad():
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
        return penalty

    def choose_penalty(self) -> float:
        """Return the penalty with the lowest loss of held-out folds."""
        is_small = len(self.frozen.examples) <= FOLDS_FOR_ALL and self._count_rows() <= ROWS_FOR_ALL
        num_folds = len(self.folds) if is_small else 1
        totals = dict.fromkeys(PENALTIES, 0.0)
        with show_progress("solving the head", num_folds * len(PENALTIES)) as bar:
            for held_out in range(num_folds):
                kept, solution = self._list_parts(held_out), self._start()
                for penalty in PENALTIES:
                    solution = self._minimize(solution, penalty, kept)
                    with torch.no_grad():
                        totals[penalty] += sum(
                            self._loss(solution, part).item() for part in self.folds[held_out]
                        )
                    bar.advance(1)
        finite = {each: total for each, total in totals.items() if math.isfinite(total)}
        return min(PENALTIES, key=lambda penalty: finite.get(penalty, math.inf))

    def cross_validate(
        self, penalty: float, share: float = 1.0, examples: Sequence[Encoded] | None = None
    ) -> list[Logits]:
        """Return the logits of each example, by a layer that was solved without its fold.

        Args:
            penalty: that of all examples: it counts as much beside fewer of them as the same prior.
            share: of the other folds, on which the layer is solved.
            examples: the same ones with other labels.
        """
        folds = self.folds
        if share < 1 or examples is not None:
            labeled = self.frozen.examples if examples is None else examples
            folds = [[self._take(part, share, labeled) for part in fold] for fold in folds]
        found: dict[int, Logits] = {}
        for held_out, left_out in enumerate(self.folds):
            kept = list(chain.from_iterable(folds[:held_out] + folds[held_out + 1 :]))
            solution = self._minimize(self._start(), min(PENALTIES[0], penalty / share), kept)
            for part in left_out:
                found |= self._predict(solution, part.numbers)
        return [found[number] for number in range(len(self.frozen.examples))]

    def _list_parts(self, held_out: int | None = None) -> list[ExamplePart]:
        """Return the parts of all folds but one."""
        folds = (fold for number, fold in enumerate(self.folds) if number != held_out)
        return list(chain.from_iterable(folds))

    def _count_rows(self) -> int:
        return sum(len(part.rows) for part in self._list_parts())

    def _cut(self, numbers: Sequence[int]) -> list[ExamplePart]:
        """Return parts with the examples of these numbers, of a bounded number of rows each."""
        num_parts = math.ceil(len(self.features.find_rows(numbers)) / ROWS_PER_PART)
        chosen = (numbers[index::num_parts] for index in range(num_parts))
        return [self._build_part(each) for each in chosen if each]

    def _build_part(self, numbers: Sequence[int]) -> ExamplePart:
        """Return a part with its rows in memory, if those of all examples fit there."""
        indexes = self.features.find_rows(numbers)
        is_labeled = self._find_labeled(numbers, self.frozen.examples)
        indexes = indexes if is_labeled is None else indexes[is_labeled]
        rows: Tensor | npt.NDArray[np.int64] = indexes
        if self.features.rows.nbytes <= MOST_KEPT_BYTES:
            rows = torch.from_numpy(self.features.rows[indexes]).to(self.device)
        return ExamplePart(rows, self._collate(numbers, self.frozen.examples), numbers)

    def _find_labeled(
        self, numbers: Sequence[int], examples: Sequence[Encoded]
    ) -> npt.NDArray[np.bool_] | None:
        """Return which rows have a label of their own; None if they have none, or all have one."""
        labels = np.concatenate([examples[number].label_rows for number in numbers])
        is_word = self.frozen.task.scored == "token" and labels.ndim == 1
        return labels != IGNORED_LABEL if is_word else None

    def _collate(self, numbers: Sequence[int], examples: Sequence[Encoded]) -> TaskBatch:
        batch = TaskBatch.collate([examples[each] for each in numbers], numbers)
        is_labeled = self._find_labeled(numbers, examples)
        if is_labeled is not None:
            batch = replace(batch, labels=batch.labels[torch.from_numpy(is_labeled)])
        return batch.to(self.device)

    def _take(self, part: ExamplePart, share: float, examples: Sequence[Encoded]) -> ExamplePart:
        """Return the first examples of a part, with labels of these."""
        numbers = part.numbers[: max(1, round(share * len(part.numbers)))]
        is_labeled = self._find_labeled(numbers, examples)
        found = len(self.features.find_rows(numbers)) if is_labeled is None else is_labeled.sum()
        return ExamplePart(part.rows[: int(found)], self._collate(numbers, examples), numbers)

    def _read(self, part: ExamplePart) -> Tensor:
        if isinstance(part.rows, Tensor):
            return part.rows
        return torch.from_numpy(self.features.rows[part.rows]).to(self.device)

    def _predict(self, solution: Solution, numbers: Sequence[int]) -> dict[int, Logits]:
        """Return the logits of examples by their numbers."""
        rows = torch.from_numpy(self.features.rows[self.features.find_rows(numbers)])
        logits = F.linear(rows.to(self.device), *self._unscale(solution)).cpu().numpy()
        logits = logits[:, 0] if self.frozen.task.scored == "choice" else logits
        sizes = [len(self.features.find_rows([number])) for number in numbers]
        return dict(zip(numbers, np.split(logits, np.cumsum(sizes)[:-1]), strict=True))

    def _start(self) -> Solution:
        layer = self.frozen.model.last_linear
        return Solution(
            torch.zeros_like(layer.weight, dtype=torch.float32),
            torch.zeros_like(layer.bias, dtype=torch.float32),
        )

    def _minimize(self, start: Solution, penalty: float, parts: Sequence[ExamplePart]) -> Solution:
        """Minimize the mean loss plus penalty / 2 · ‖weights‖².

        Weights are sought along the directions of the features, each scaled by about the curvature
        of the loss, so that few steps are needed.
        """
        scale = (CURVATURE * self.variances + penalty).sqrt()
        free = ((start.weight @ self.directions) * scale).requires_grad_()
        bias = start.bias.clone().requires_grad_()
        count = sum(part.batch.target_counts["task"] for part in parts)
        optimizer = torch.optim.LBFGS(
            [free, bias],
            max_iter=MAX_ITERATIONS,
            tolerance_grad=1e-4,
            tolerance_change=1e-6,
            line_search_fn="strong_wolfe",
        )

        def evaluate() -> float:  # part by part, so that the graph of one at a time is held
            optimizer.zero_grad()
            weight = (free / scale) @ self.directions.T
            solution = Solution(weight.detach().requires_grad_(), bias)
            size = penalty / 2 * solution.weight.square().sum()
            size.backward()  # type: ignore[no-untyped-call]
            total = size.item()
            for part in parts:
                loss = self._loss(solution, part) / count
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item()
            weight.backward(solution.weight.grad)  # type: ignore[no-untyped-call]
            return total

        optimizer.step(evaluate)  # type: ignore[no-untyped-call]
        with torch.no_grad():
            return Solution((free / scale) @ self.directions.T, bias.detach())

    def _loss(self, solution: Solution, part: ExamplePart) -> Tensor:
        """Return the summed loss of a part."""
        logits = F.linear(self._read(part), *self._unscale(solution))
        task = self.frozen.task
        scores = task.loss(logits[:, 0] if task.scored == "choice" else logits, part.batch)
        return torch.stack(list(scores.losses.values())).sum()

    def _unscale(self, solution: Solution) -> tuple[Tensor, Tensor]:
        """Return weights and bias for features as they are."""
        weight = solution.weight / self.deviation
        return weight, solution.bias - weight @ self.mean

    def _measure_features(self) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of each feature."""
        total = squares = torch.zeros((), dtype=torch.float64)
        for part in self._list_parts():
            rows = self._read(part).cpu().double()
            total, squares = total + rows.sum(dim=0), squares + rows.square().sum(dim=0)
        if not bool(squares.isfinite().all()):
            raise NonFiniteError(
                "the encoder's hidden states aren't finite; check the model with `bertkit inspect`"
            )
        count = self._count_rows()
        mean = total / count
        deviation = (squares / count - mean.square()).clamp_min(0.0).sqrt()
        deviation = torch.where(deviation > LEAST_DEVIATION, deviation, 1.0)
        return mean.float().to(self.device), deviation.float().to(self.device)

    def _find_directions(self) -> tuple[Tensor, Tensor]:
        """Return the variances of scaled features along their principal directions, and these."""
        total = torch.zeros((), device=self.device)
        for part in self._list_parts():
            rows = (self._read(part) - self.mean) / self.deviation
            total = total + rows.T @ rows
        variances, directions = torch.linalg.eigh((total / self._count_rows()).double().cpu())
        return (
            variances.clamp_min(0.0).float().to(self.device),
            directions.float().to(self.device),
        )


@contextmanager
def computed_features(folder: Path, frozen: FrozenModel) -> Iterator[Features]:
    """Compute features into a file of a new folder, which is removed at the end."""
    remove_folder(folder)  # left by a killed process
    make_folder(folder)
    try:
        yield write_features(folder / "train", frozen)
    finally:
        remove_folder(folder)


def solve_head(
    run: Path,
    frozen: FrozenModel,
    others: Sequence[Encoded] = (),
    folds: Sequence[Sequence[int]] = (),
) -> list[Logits]:
    """Solve the head's last linear layer, with features in a file that is removed at the end.

    With folds of the model's examples and others, return the logits of each of these, by a layer
    that was solved without its fold.
    """
    whole = replace(frozen, examples=[*frozen.examples, *others])
    place = run / SUMMARIES_FOLDER
    with computed_features(place, whole) as features:
        announce(f"computed hidden states once: {features.rows.nbytes / 1e6:,.1f} MB in {place}")
        started = time.monotonic()
        penalty = HeadSolver(frozen, features).solve()
        announce(
            f"solved the head in {time.monotonic() - started:.1f} s (L2 penalty {penalty:g}, chosen"
            " by cross-validation on the training examples)"
        )
        return HeadSolver(whole, features, folds).cross_validate(penalty) if folds else []


def deal_folds(
    examples: Sequence[TaskExample], seed: int, twins: Mapping[int, int] | None = None
) -> list[list[int]]:
    """Deal examples into folds with like shares of each class; equal texts share a fold.

    `twins` has the number of one that an example repeats, which has the same fold, too.
    """
    together: defaultdict[str, list[int]] = defaultdict(list)
    for number in range(len(examples)):
        example = examples[(twins or {}).get(number, number)]
        together[example.group or example.shown or example.place].append(number)
    groups = list(together.values())
    order = np.random.default_rng(seed).permutation(len(groups)).tolist()
    order.sort(key=lambda place: examples[groups[place][0]].stratum or "")
    folds = (
        list(chain.from_iterable(groups[place] for place in order[first::NUM_FOLDS]))
        for first in range(NUM_FOLDS)
    )
    generator = np.random.default_rng((seed, 1))
    return [generator.permutation(fold).tolist() for fold in folds if fold]
