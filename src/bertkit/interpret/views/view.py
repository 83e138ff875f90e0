"""What every view is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.page.scene import Scene


def _always(_: Scene) -> bool:
    return True


def looks_at_itself(scene: Scene) -> bool:
    """Whether it is one text that looks, and is looked at."""
    return not scene.is_across


def is_of_one_stack(scene: Scene) -> bool:
    """Whether it is of a model that has one stack of layers: no encoder-decoder."""
    return isinstance(scene.subject, InspectedModel)


@dataclass(frozen=True)
class View:
    """One way of looking at a scene, a tab of the page.

    Attributes:
        name: its key in `VIEWS`, and the name of its script beside this file.
        title: on its tab.
        legend: paragraphs in plain words: what is seen, what the colors mean, what to try; see
            `paragraphs`.
        collect: its own numbers, as data for JSON without NaN and infinities; {} where those that
            all views share are enough.
        suits: whether the scene has what it shows.
        across_legend: what is said in place of the legend where one text looks at another; the
            same if there is nothing.
    """

    name: str
    title: str
    legend: tuple[str, ...]
    collect: Callable[[Scene], dict[str, Any]]
    suits: Callable[[Scene], bool] = _always
    across_legend: tuple[str, ...] = ()


def paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a text: empty lines part them, and other line ends are spaces."""
    return tuple(" ".join(part.split()) for part in text.split("\n\n"))
