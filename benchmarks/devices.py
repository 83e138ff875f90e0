"""Where the sides of a benchmark compute: a CPU or a GPU, its clock, its memory and its name."""

import argparse
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch

from bertkit.base.errors import SettingsError
from bertkit.inference.settings import EngineName
from bertkit.training.device import choose_device, mixed_precision, synchronize
from program import be_quiet

# How far apart the losses of two sides may be, as a share of the greater one.
MAX_DIFFERENCES = {"fp32": 1e-4, "bf16": 2e-2}
NUM_THREADS = 2
ENGINES: dict[str, EngineName] = {"bertkit": "openvino", "bertkit, PyTorch": "torch"}

Loaded = TypeVar("Loaded")


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
        Place.add_device(parser)
        parser.add_argument(
            "--precision",
            choices=("fp32", "bf16"),
            help="by default bf16 on a GPU and fp32 on a CPU",
        )

    @staticmethod
    def add_device(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")

    @classmethod
    def of(cls, device: str, precision: str | None = None) -> "Place":
        """The place that flags or words name; the program ends where there is no such device."""
        try:
            found = choose_device(device)
        except SettingsError as error:
            raise SystemExit(f"--device: {error}") from None
        is_bf16 = precision == "bf16" or (precision is None and found.type == "cuda")
        return cls(found, "bf16" if is_bf16 else "fp32")

    @classmethod
    def begin(cls, device: str = "cpu") -> "Place":
        """Where sides that share this process compute in float32, on two threads, quietly."""
        be_quiet()
        torch.set_num_threads(NUM_THREADS)
        return cls.of(device, "fp32")

    @property
    def is_gpu(self) -> bool:
        return self.device.type == "cuda"

    @property
    def words(self) -> list[str]:
        """Device and precision, as a side's command line takes them."""
        return [str(self.device), self.precision]

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Of which a pipeline of transformers takes the fastest."""
        return (32, 64, 128, 256, 512) if self.is_gpu else (8, 16, 32, 64, 128)

    def load_ours(self, load: Callable[..., Loaded], folder: Path | str) -> dict[str, Loaded]:
        """A model of bertkit with each engine that runs here."""
        return {
            name: load(folder, device=str(self.device), engine=engine, precision=self.precision)
            for name, engine in ENGINES.items()
            if not (self.is_gpu and engine == "openvino")
        }

    def check_losses(self, what: str, losses: Mapping[str, float]) -> None:
        """End the program where the sides' losses of the same batch differ."""
        share = MAX_DIFFERENCES[self.precision]
        pairs = combinations(losses.values(), 2)
        if not all(math.isclose(one, other, rel_tol=share) for one, other in pairs):
            raise SystemExit(
                f"{what}: the losses of the same batch differ by more than {share:g} of the greater"
                f" one: {losses}"
            )

    def mixed_precision(self) -> AbstractContextManager[object]:
        return mixed_precision(self.device, self.precision)

    def synchronize(self) -> None:
        synchronize(self.device)

    def count_memory_anew(self) -> None:
        """Forget the most memory that was held so far; on a GPU only."""
        if self.is_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak_memory_bytes(self) -> int | None:
        """The most memory that tensors have held on a GPU; None on a CPU."""
        return torch.cuda.max_memory_allocated(self.device) if self.is_gpu else None

    def describe(self) -> dict[str, Any]:
        traits: dict[str, Any] = {"device": self.device.type, "precision": self.precision}
        if self.is_gpu:
            traits["gpu"] = torch.cuda.get_device_name(self.device)
            traits["cuda"] = torch.version.cuda
        return traits


def show_memory(num_bytes: int | None) -> str:
    return "–" if num_bytes is None else f"{num_bytes / 1e9:.1f} GB"
