"""All views, in the order of their tabs."""

from bertkit.interpret.views.attention import ALIGNMENT, HEADS, MODEL, NEURONS, NEXT, TOKENS, WORDS
from bertkit.interpret.views.inputs import INPUTS
from bertkit.interpret.views.measures import GEOMETRY, IMPORTANCE
from bertkit.interpret.views.view import View

ORDERED = (ALIGNMENT, HEADS, MODEL, NEURONS, INPUTS, TOKENS, WORDS, NEXT, IMPORTANCE, GEOMETRY)
VIEWS: dict[str, View] = {view.name: view for view in ORDERED}
