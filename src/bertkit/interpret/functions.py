"""The function `bertkit.view`."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bertkit.api.settings import build, takes
from bertkit.checkpoints.bundled import find_bundled
from bertkit.inference.settings import LoadingSettings
from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.settings import ViewSettings

if TYPE_CHECKING:
    from bertkit.interpret.keywords import ViewKeywords


@takes(ViewSettings, LoadingSettings)
def view(
    text: str,
    pair: str | None = None,
    *,
    model: str | Path | None = None,
    **settings: "Unpack[ViewKeywords]",
) -> AttentionView:
    """Show a model's attention for a text: a page in a notebook; `.write(path)` makes a file.

    Args:
        text: the text.
        pair: a second text; for an encoder-decoder, the target text.
        model: a model folder, a run, or the id of a model of the Hub; by default the model that
            comes with bertkit.

    Further keyword arguments: fields of `ViewSettings` and `LoadingSettings`.

    Raises:
        BertkitError: as in `AttentionView.of`.
    """
    chosen, loading = build(ViewSettings, settings), build(LoadingSettings, settings)
    model = find_bundled(chosen.find_bundled_part(text)) if model is None else model
    return AttentionView.of(model, text, pair, chosen, **dict(loading))
