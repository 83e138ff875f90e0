"""All views, in the order of their tabs."""

from bertkit.interpret.views.alignment import ALIGNMENT
from bertkit.interpret.views.geometry import GEOMETRY
from bertkit.interpret.views.heads import HEADS
from bertkit.interpret.views.importance import IMPORTANCE
from bertkit.interpret.views.model import MODEL
from bertkit.interpret.views.neurons import NEURONS
from bertkit.interpret.views.next import NEXT
from bertkit.interpret.views.tokens import TOKENS
from bertkit.interpret.views.view import View
from bertkit.interpret.views.words import WORDS

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
