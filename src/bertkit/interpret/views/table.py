"""All views, in the order of their tabs."""

from bertkit.interpret.views.attention import ALIGNMENT, HEADS, MODEL, NEURONS, NEXT, TOKENS, WORDS
from bertkit.interpret.views.measures import GEOMETRY, IMPORTANCE
from bertkit.interpret.views.view import View

VIEWS: dict[str, View] = {
    "alignment": ALIGNMENT,
    "heads": HEADS,
    "model": MODEL,
    "neurons": NEURONS,
    "tokens": TOKENS,
    "words": WORDS,
    "next": NEXT,
    "importance": IMPORTANCE,
    "geometry": GEOMETRY,
}
