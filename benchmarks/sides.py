"""Sides in processes of their own, which take turns: what tells them what to do, and their loop.

A side is a program that answers with a line of JSON: once when it is ready, and then whenever it
has done what a line of standard input asks for.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

import torch
from torch import Tensor, nn

from devices import Place, show_memory
from program import FOLDER, PASSIVE, Answer
from turns import format_row, order_turn, show_ratio, spread

Answers = dict[str, list[Answer]]


class Sides:
    """The sides of a benchmark; `told` is what each said when it was ready.

    Args:
        script: of the program.
        names: of the sides, each the first word of its program.
        words: the others.
        one_by_one: whether a side is begun only when the one before is ready.
    """

    def __init__(
        self, script: str, names: Iterable[str], *words: object, one_by_one: bool = False
    ) -> None:
        self.names = list(names)
        self._programs: dict[str, subprocess.Popen[str]] = {}
        self.told: dict[str, Answer] = {}
        for name in self.names:
            self._programs[name] = subprocess.Popen(
                [sys.executable, str(FOLDER / script), name, *map(str, words)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**PASSIVE, **os.environ},
            )
            if one_by_one:
                self.told[name] = self._read(name)
        self.told |= {name: self._read(name) for name in self.names if name not in self.told}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for program in self._programs.values():
            program.communicate()

    def ask(self, name: str, order: object) -> Answer:
        """Tell a side what to do, and read its answer."""
        stream = self._programs[name].stdin
        assert stream is not None
        stream.write(f"{order}\n")
        stream.flush()
        return self._read(name)

    def _read(self, name: str) -> Answer:
        stream = self._programs[name].stdout
        assert stream is not None
        line = stream.readline()
        if not line:
            raise SystemExit("a side ended, for the reason above")
        answer: Answer = json.loads(line)
        return answer

    def take_turns(
        self,
        orders: Iterable[object],
        num_uncounted: int = 1,
        before_round: Callable[[], object] = bool,
        when_answered: Callable[[str, Answer], object] = lambda _name, _answer: None,
    ) -> Answers:
        """What each side answers to each order; a round begins with another side each time."""
        answers: Answers = {name: [] for name in self.names}
        for number, order in enumerate(orders):
            before_round()
            for name in order_turn(self.names, number):
                answers[name].append(self.ask(name, order))
                when_answered(name, answers[name][-1])
        return {name: each[num_uncounted:] for name, each in answers.items()}

    def losses(self, what: str, place: Place) -> dict[str, float]:
        """The losses of the first batch, which must agree."""
        losses = {name: told["loss"] for name, told in self.told.items()}
        place.check_losses(what, losses)
        return losses


class Stepper:
    """Training steps of a model, the same for all sides: forward, backward, clipping and AdamW.

    Args:
        model: with its weights.
        place: where it computes.
        optimizer: fused AdamW at 1e-4 unless another is given.
    """

    def __init__(
        self, model: nn.Module, place: Place, optimizer: torch.optim.Optimizer | None = None
    ) -> None:
        self.model, self.place = model, place
        self.optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def find_loss(self, loss_of: Callable[[], Tensor]) -> float:
        """The loss without dropout."""
        self.model.eval()
        with torch.no_grad(), self.place.mixed_precision():
            loss = float(loss_of())
        self.model.train()
        return loss

    def take(self, loss_of: Callable[[], Tensor]) -> Answer:
        """A step, its time and what a GPU held at most so far."""
        self.place.synchronize()
        started, cpu_started = time.perf_counter(), time.process_time()
        self.optimizer.zero_grad()
        with self.place.mixed_precision():
            loss = loss_of()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.place.synchronize()
        return {
            "seconds": time.perf_counter() - started,
            "cpu_seconds": time.process_time() - cpu_started,
            "peak_memory_bytes": self.place.peak_memory_bytes(),
        }


def compare_speeds(answers: Answers, unit: str, tokens_per_unit: float = 1.0) -> dict[str, Answer]:
    """Medians of speeds, ratios round by round with the least and the greatest, and padding.

    Args:
        answers: to each side's orders; tokens, places for them with padding, and times.
        unit: in which speed is told, in the plural.
        tokens_per_unit: tokens that are one of these.
    """
    return {
        side: {
            f"{unit}_per_second": statistics.median(find_speeds(each, "seconds")) / tokens_per_unit,
            "padding": 1 - sum(one["tokens"] for one in each) / sum(one["places"] for one in each),
            "ratio": compare_clocks(answers["bertkit"], each, "seconds"),
            "cpu_ratio": compare_clocks(answers["bertkit"], each, "cpu_seconds"),
            "peak_memory_bytes": each[-1]["peak_memory_bytes"],
        }
        for side, each in answers.items()
    }


def compare_clocks(
    ours: Sequence[Answer], theirs: Sequence[Answer], clock: str
) -> dict[str, float]:
    pairs = zip(find_speeds(ours, clock), find_speeds(theirs, clock), strict=True)
    return spread([one / other for one, other in pairs], "ratio")


def find_speeds(answers: Sequence[Answer], clock: str) -> list[float]:
    """Real tokens a second of each round."""
    return [each["tokens"] / each[clock] for each in answers]


def describe_speed(row: Answer, unit: str, *labels: object) -> str:
    """A side of `compare_speeds` as a line of a table."""
    return format_row(
        *labels,
        f"{row[f'{unit}_per_second']:,.1f}",
        f"{row['padding']:.0%}",
        show_ratio(row["ratio"]),
        show_ratio(row["cpu_ratio"]),
        show_memory(row["peak_memory_bytes"]),
    )
