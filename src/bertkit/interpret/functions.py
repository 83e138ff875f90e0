"""The function `bertkit.view`."""

from pathlib import Path
from typing import overload

from pydantic import SkipValidation

from bertkit.api.settings import Call, takes, takes_any
from bertkit.base.settings import select
from bertkit.checkpoints.bundled import find_bundled
from bertkit.inference.settings import LoadingSettings
from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.settings import ViewSettings


class ViewCall(ViewSettings, LoadingSettings, Call):
    """The keyword arguments of `view`."""

    model: SkipValidation[str | Path | None] = None


@overload
@takes(ViewCall)
def view(call: ViewCall, text: str) -> AttentionView: ...


@overload
@takes(ViewCall)
def view(call: ViewCall, text: str, pair: str | None) -> AttentionView: ...


@takes_any(ViewCall)
def view(call: ViewCall, text: str, pair: str | None = None) -> AttentionView:
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
    chosen, loading = select(ViewSettings, call), select(LoadingSettings, call)
    model = call.model if call.model is not None else find_bundled(chosen.find_bundled_part(text))
    return AttentionView.of(model, text, pair, chosen, **dict(loading))
