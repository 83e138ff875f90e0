"""Freezing and layer-wise learning rates, by the names of parameters.

Source: Howard and Ruder 2018, section 3.2, for learning rates that fall from layer to layer.
"""

from collections.abc import Callable

from torch import nn

from bertkit.base.errors import SettingsError
from bertkit.base.wording import pluralize

LAYERS = "encoder.layers."
EMBEDDINGS = "encoder.embeddings."


def scale_by_layer(decay: float, num_layers: int) -> Callable[[str], float]:
    """Return a function: name of a parameter → factor of its learning rate.

    Pooler and head have 1, the top layer `decay`, each layer below it `decay` times the factor
    above, and the embeddings the lowest.

    Args:
        decay: above 0, at most 1.
        num_layers: number of the encoder's layers.
    """

    def scale(name: str) -> float:
        return float(decay ** (num_layers + 1 - _height(name, num_layers)))

    return scale


def freeze_parameters(model: nn.Module, what: str, num_layers: int) -> int:
    """Freeze some parameters.

    Args:
        model: the model to train.
        what: none, embeddings, a number of the lowest layers (embeddings included), or encoder.
        num_layers: number of the encoder's layers.

    Returns:
        The number of frozen parameters.
    """
    if what == "none":
        return 0
    if what == "embeddings":
        highest = 0
    elif what == "encoder":
        highest = num_layers
    else:
        highest = int(what)
    if highest > num_layers:
        raise SettingsError(
            f"freeze is {what}, and the encoder has {pluralize(num_layers, 'layer')}"
        )
    num_frozen = 0
    for name, parameter in model.named_parameters():
        if _height(name, num_layers) <= highest:
            parameter.requires_grad_(False)
            num_frozen += parameter.numel()
    return num_frozen


def _height(name: str, num_layers: int) -> int:
    """Return 0 for embeddings, 1 for the lowest layer, `num_layers + 1` for pooler and head."""
    if name.startswith(EMBEDDINGS):
        return 0
    if name.startswith(LAYERS):
        return 1 + int(name.removeprefix(LAYERS).partition(".")[0])
    return num_layers + 1
