"""Where the sides of a benchmark compute: a CPU or a GPU, its clock, its memory and its name."""

import argparse
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import torch

from bertkit.base.errors import SettingsError
from bertkit.training.device import choose_device, mixed_precision, synchronize

# How far apart the losses of two sides may be, as a share of the greater one.
MAX_DIFFERENCES = {"fp32": 1e-4, "bf16": 2e-2}


@dataclass(frozen=True)
class Place:
    """Where all sides of a benchmark compute, and in which precision.

    Attributes:
        device: a CPU or a GPU.
        precision: of matrix products; weights stay float32.
    """

    device: torch.device
    precision: Literal["fp32", "bf16"]

    @staticmethod
    def add_flags(parser: argparse.ArgumentParser) -> None:
        """Give a benchmark of training `--device` and `--precision`."""
        Place.add_device(parser)
        parser.add_argument(
            "--precision",
            choices=("fp32", "bf16"),
            help="by default bf16 on a GPU and fp32 on a CPU",
        )

    @staticmethod
    def add_device(parser: argparse.ArgumentParser) -> None:
        """Give a benchmark `--device`."""
        parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")

    @classmethod
    def of(cls, device: str, precision: Literal["fp32", "bf16"] | None = None) -> "Place":
        """The place that flags name; the program ends where there is no such device."""
        try:
            found = choose_device(device)
        except SettingsError as error:
            raise SystemExit(f"--device: {error}") from None
        return cls(found, precision or ("bf16" if found.type == "cuda" else "fp32"))

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.device.type == "cuda"

    @property
    def words(self) -> list[str]:
        """Device and precision, as a side's command line takes them."""
        return [str(self.device), self.precision]

    def check_losses(self, what: str, losses: Mapping[str, float]) -> None:
        """End the program where the sides' losses of the same batch differ."""
        greatest = max(losses.values())
        if greatest - min(losses.values()) > MAX_DIFFERENCES[self.precision] * greatest:
            raise SystemExit(f"{what}: the losses of the same batch differ: {losses}")

    def mixed_precision(self) -> AbstractContextManager[object]:
        """A context in which matrix products run in the precision."""
        return mixed_precision(self.device, self.precision)

    def synchronize(self) -> None:
        """Wait until the device has done what was asked of it; before a clock is read."""
        synchronize(self.device)

    def count_memory_anew(self) -> None:
        """Forget the most memory that was held so far; on a GPU only."""
        if self.is_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak_memory_bytes(self) -> int | None:
        """The most memory that tensors have held on a GPU; None on a CPU."""
        return torch.cuda.max_memory_allocated(self.device) if self.is_gpu else None

    def describe(self) -> dict[str, Any]:
        """What a figure depends on: the GPU where there is one, and the precision."""
        traits: dict[str, Any] = {"device": self.device.type, "precision": self.precision}
        if self.is_gpu:
            traits["gpu"] = torch.cuda.get_device_name(self.device)
            traits["cuda"] = torch.version.cuda
        return traits


def show_memory(num_bytes: int | None) -> str:
    """Peak memory as a cell of a table."""
    return "–" if num_bytes is None else f"{num_bytes / 1e9:.1f} GB"
