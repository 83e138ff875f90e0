"""All views, in the order of their tabs."""

from bertkit.interpret.views.heads import HEADS
from bertkit.interpret.views.model import MODEL
from bertkit.interpret.views.view import View

VIEWS: dict[str, View] = {
    "heads": HEADS,
    "model": MODEL,
}
