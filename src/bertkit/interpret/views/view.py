"""The interface of a view, and its inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bertkit.interpret.contexts import WordInContexts
from bertkit.interpret.inspected_model import AnyInspected
from bertkit.interpret.observation import Observation
from bertkit.reports.interactive import JsonObject

Collected = Mapping[str, Any]  # what a view collected, by name: lists and numbers


@dataclass(frozen=True, eq=False)
class ViewInputs:
    """A model and its observation of one text.

    Attributes:
        inspected: the model.
        observation: the observation of the text, of one of the model's attentions.
        contexts: a word in several texts, for the geometry view.
    """

    inspected: AnyInspected
    observation: Observation
    contexts: WordInContexts | None = None

    @property
    def has_two_texts(self) -> bool:
        """Whether this is attention from one text to another."""
        return self.observation.attended is not None

    @cached_property
    def _collected(self) -> dict[str, JsonObject]:
        return {}

    def collect(self, view: "View") -> JsonObject:
        """Return a view's data, which is computed once."""
        if view.name not in self._collected:
            self._collected[view.name] = view.collect(self)
        return self._collected[view.name]


@dataclass(frozen=True)
class View:
    """One view: a tab of the page."""

    name: str  # of its script in this folder, and its key in `VIEWS`
    title: str  # of its tab
    legend: tuple[str, ...]  # what is shown, what colors mean and what to try; see `paragraphs`
    collect: Callable[[ViewInputs], JsonObject] = lambda _: {}
    supports: Callable[[ViewInputs], bool] = lambda _: True  # whether the view can show the inputs
    # what `collect` found, as lines
    summarize: Callable[[Collected], list[str]] | None = None


def paragraphs(text: str) -> tuple[str, ...]:
    """Split a text into paragraphs at empty lines; other line breaks become spaces."""
    return tuple(" ".join(part.split()) for part in text.split("\n\n"))
