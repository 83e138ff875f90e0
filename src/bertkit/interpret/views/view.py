"""What every view is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bertkit.interpret.scene import Scene


def _always(_: Scene) -> bool:
    return True


@dataclass(frozen=True)
class View:
    """One way of looking at a scene, a tab of the page.

    Attributes:
        name: its key in `VIEWS`, and the name of its script beside this file.
        title: on its tab.
        legend: paragraphs in plain words: what is seen, what the colours mean, what to try; see
            `paragraphs`.
        collect: its own numbers, as data for JSON without NaN and infinities; {} where those that
            all views share are enough.
        suits: whether the scene has what it shows.
    """

    name: str
    title: str
    legend: tuple[str, ...]
    collect: Callable[[Scene], dict[str, Any]]
    suits: Callable[[Scene], bool] = _always


def paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a text: empty lines part them, and other line ends are spaces."""
    return tuple(" ".join(part.split()) for part in text.split("\n\n"))
