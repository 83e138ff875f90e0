"""All views, in the order of their tabs."""

from collections.abc import Iterable

from bertkit.base.errors import SettingsError
from bertkit.interpret.views.attention import ALIGNMENT, HEADS, MODEL, NEURONS, NEXT, TOKENS, WORDS
from bertkit.interpret.views.inputs import INPUTS
from bertkit.interpret.views.measures import GEOMETRY, IMPORTANCE
from bertkit.interpret.views.view import View

ORDERED = (ALIGNMENT, HEADS, MODEL, NEURONS, INPUTS, TOKENS, WORDS, NEXT, IMPORTANCE, GEOMETRY)
VIEWS: dict[str, View] = {view.name: view for view in ORDERED}


def choose_views(names: Iterable[str] | None) -> list[View]:
    """Return the views of some names, without duplicates, or all."""
    chosen = list(dict.fromkeys(VIEWS if names is None else names))
    unknown = [name for name in chosen if name not in VIEWS]
    if unknown:
        raise SettingsError(
            f"there is no view {', '.join(unknown)!r:.60}; name some of {', '.join(VIEWS)}"
        )
    return [VIEWS[name] for name in chosen]
