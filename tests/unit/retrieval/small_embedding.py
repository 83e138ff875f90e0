"""A small embedder that can be made to fail, and texts for some windows of it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.inference.small import WORDS

from bertkit.inference import stream
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.engines.engine import Engine
from bertkit.retrieval import unfinished_vectors
from bertkit.retrieval.settings import EmbedSettings

WINDOW_TEXTS, NUM_TEXTS = 8, 60
NUM_WINDOWS = -(-NUM_TEXTS // WINDOW_TEXTS)


@dataclass
class WatchedEngine:
    """Does something before its nth batch, which is its nth window with texts as short as ours."""

    engine: Engine
    at: int = 0
    act: Callable[[], Any] = int
    num_batches: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def __call__(self, batch: Any) -> Any:
        self.num_batches += 1
        if self.num_batches == self.at:
            self.act()
        return self.engine(batch)


def make_texts(num_texts: int = NUM_TEXTS, seed: int = 0) -> list[str]:
    choose = random.Random(seed)
    texts = [" ".join(choose.choices(WORDS, k=choose.randint(0, 8))) for _ in range(num_texts)]
    texts[3:6] = ["", "zebra", "the cat " * 30]
    return texts


def contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def write_texts(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def use_small_windows(patches: pytest.MonkeyPatch, save_seconds: float = 0.0) -> None:
    """Cut few texts to a window, and make rows safe after each."""
    patches.setattr(stream, "WINDOW_TEXTS", WINDOW_TEXTS)
    patches.setattr(unfinished_vectors, "SAVE_SECONDS", save_seconds)


def use_engine(
    patches: pytest.MonkeyPatch, embedder: Embedder, at: int = 0, act: Callable[[], Any] = int
) -> WatchedEngine:
    """Let every loaded embedder be this one, with an engine that is watched."""
    engine = WatchedEngine(embedder.engine, at, act)
    watched = replace(embedder, engine=engine)
    patches.setattr(Embedder, "load", lambda *arguments, **options: watched)
    return engine


def settings(**choices: Any) -> EmbedSettings:
    return EmbedSettings(**{"engine": "torch", **choices})


def load(model: Path, **choices: Any) -> Embedder:
    return Embedder.load(model, EmbedderSettings(**{"engine": "torch", **choices}))
