"""Processes that train together, started as torchrun does, with torch already loaded."""

import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tests.faults.children import PROCESSES
from tests.waiting import TIMEOUT_SECONDS

from bertkit.cli.main import main


@dataclass(frozen=True)
class Post:
    """What one of the processes is to do."""

    words: Sequence[str]
    rank: int
    num_ranks: int
    port: int
    messages: Path


def take_post(post: Post) -> None:
    """Run a command as one of the ranks."""
    torch.set_num_threads(1)
    environment = {
        "RANK": post.rank,
        "LOCAL_RANK": post.rank,
        "WORLD_SIZE": post.num_ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": post.port,
    }
    os.environ |= {name: str(value) for name, value in environment.items()}
    with post.messages.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    sys.exit(main(post.words))


def run_ranks(words: Sequence[str], num_ranks: int, folder: Path) -> list[tuple[int, str]]:
    """Run a command in several processes; their exit codes and what each of them wrote."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    posts = [
        Post(words, rank, num_ranks, port, folder / f"rank-{rank}.txt") for rank in range(num_ranks)
    ]
    children = [PROCESSES.Process(target=take_post, args=(post,)) for post in posts]
    for child in children:
        child.start()
    for child in children:
        child.join(TIMEOUT_SECONDS)
        if child.exitcode is None:
            for each in children:
                each.kill()
            pytest.fail(f"a rank was still there after {TIMEOUT_SECONDS} s")
    return [
        (child.exitcode, post.messages.read_text())
        for child, post in zip(children, posts, strict=True)
    ]
