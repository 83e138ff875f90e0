"""All views, in the order of their tabs."""

from collections.abc import Iterable

from bertkit.base.errors import SettingsError
from bertkit.base.wings import ATTENTION_VIEWS, list_installed, load_object
from bertkit.interpret.views.attention import HEADS, MODEL, NEURONS, TOKENS, WORDS
from bertkit.interpret.views.inputs import INPUTS
from bertkit.interpret.views.measures import GEOMETRY, IMPORTANCE
from bertkit.interpret.views.view import View

ORDER = "alignment, heads, model, neurons, inputs, tokens, words, next, importance, geometry"
OWN = {
    view.name: view for view in (HEADS, MODEL, NEURONS, INPUTS, TOKENS, WORDS, IMPORTANCE, GEOMETRY)
}
OFFERED = {name: load_object(at) for name, at in list_installed(ATTENTION_VIEWS).items()}
VIEWS: dict[str, View] = {
    name: view for name in ORDER.split(", ") if (view := OWN.get(name) or OFFERED.get(name))
}


def choose_views(names: Iterable[str] | None) -> list[View]:
    """Return the views of some names, without duplicates, or all."""
    chosen = list(dict.fromkeys(VIEWS if names is None else names))
    if not chosen:
        raise SettingsError(f"name at least one view, of {', '.join(VIEWS)}")
    unknown = [name for name in chosen if name not in VIEWS]
    if unknown:
        raise SettingsError(
            f"there is no view {', '.join(unknown)!r:.60}; name some of {', '.join(VIEWS)}"
        )
    return [VIEWS[name] for name in chosen]
