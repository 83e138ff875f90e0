"""The interface of a view."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.page.scene import Scene


def _always(_: Scene) -> bool:
    return True


def looks_at_itself(scene: Scene) -> bool:
    """Return whether the scene shows self-attention."""
    return not scene.is_across


def is_of_one_stack(scene: Scene) -> bool:
    """Return whether the model has one stack of layers, so isn't an encoder-decoder."""
    return isinstance(scene.subject, InspectedModel)


@dataclass(frozen=True)
class View:
    """One view of a scene: a tab of the page.

    Attributes:
        name: its key in `VIEWS`, and the name of its script beside this file.
        title: the title of its tab.
        legend: paragraphs that explain in plain words what is shown, what the colors mean and what
            to try; see `paragraphs`.
        collect: returns the view's own data for JSON, without NaN and infinities; {} if the shared
            data is enough.
        suits: returns whether the view can show the scene.
        across_legend: the legend for cross-attention; if empty, `legend` is used.
    """

    name: str
    title: str
    legend: tuple[str, ...]
    collect: Callable[[Scene], dict[str, Any]]
    suits: Callable[[Scene], bool] = _always
    across_legend: tuple[str, ...] = ()


def paragraphs(text: str) -> tuple[str, ...]:
    """Split a text into paragraphs at empty lines; other line breaks become spaces."""
    return tuple(" ".join(part.split()) for part in text.split("\n\n"))
