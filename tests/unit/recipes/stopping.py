"""Runs that are stopped in the midst of a step, and what runs leave behind."""

import signal
from pathlib import Path

import pytest
from tests.logs import rows_without_clock

from bertkit.training import loop


def read_rows(output: Path) -> list[dict]:
    """A run's log, without what no two runs share."""
    return rows_without_clock(output / "run" / "log.jsonl")


def read_files(output: Path) -> dict[str, bytes]:
    """The files of a folder, without those of folders in it."""
    return {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()}


def stop_at(step: int, patch: pytest.MonkeyPatch, number: signal.Signals = signal.SIGTERM) -> None:
    """Send a signal in the midst of a step."""
    take_step = loop.take_step

    def take(job, replica, at, learning_rate):
        if at == step:
            signal.raise_signal(number)
        return take_step(job, replica, at, learning_rate)

    patch.setattr(loop, "take_step", take)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def flip_last_bit(path: Path) -> None:
    """Damage a file."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
