"""Processes that train together, started as torchrun does, with torch already loaded."""

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tests.faults.children import PROCESSES
from tests.waiting import TIMEOUT_SECONDS

from bertkit.cli.main import main


def take_post(words: Sequence[str], rank: int, num_ranks: int, port: int, messages: Path) -> None:
    """Run a command as one of the ranks."""
    torch.set_num_threads(1)
    environment = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": num_ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ |= {name: str(value) for name, value in environment.items()}
    with messages.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    sys.exit(main(words))


def run_ranks(words: Sequence[str], num_ranks: int, folder: Path) -> list[tuple[int, str]]:
    """Run a command in several processes; their exit codes and what each of them wrote."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    messages = [folder / f"rank-{rank}.txt" for rank in range(num_ranks)]
    children = [
        PROCESSES.Process(target=take_post, args=(words, rank, num_ranks, port, path))
        for rank, path in enumerate(messages)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(TIMEOUT_SECONDS)
        if child.exitcode is None:
            for each in children:
                each.kill()
            pytest.fail(f"a rank was still there after {TIMEOUT_SECONDS} s")
    return [
        (child.exitcode, path.read_text()) for child, path in zip(children, messages, strict=True)
    ]
