"""Which tokens of a sequence each token may attend to."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.nn.settings import MaskSettings


@dataclass(frozen=True)
class AttentionMask:
    """Which tokens each token may attend to, with words for whoever shows attention.

    Attributes:
        name: for titles; empty if each token may attend to all.
        note: for explanations; empty likewise.
        is_causal: whether a token attends only to itself and to earlier tokens.
        window: the largest distance at which a token attends to another; None for any.
    """

    name: str = ""
    note: str = ""
    is_causal: bool = False
    window: int | None = None

    def find_allowed(self, num_queries: int, num_keys: int) -> Bool[Tensor, "queries keys"]:
        """Return the keys that each query may attend to.

        Raises:
            SettingsError: a causal mask isn't square.
        """
        allowed = torch.ones(num_queries, num_keys, dtype=torch.bool)
        if self.window is not None:
            allowed = allowed.tril_(self.window).triu_(-self.window)
        if not self.is_causal:
            return allowed
        if num_queries != num_keys:
            raise SettingsError(
                f"causal needs a key for each query, and there are {num_queries} queries and"
                f" {num_keys} keys"
            )
        return allowed.tril()


BIDIRECTIONAL = AttentionMask()
CAUSAL = AttentionMask(
    "left to right",
    "This is a left-to-right model: a token attends to itself and to the tokens before it, never to"
    " those after it. The first token attends only to itself.",
    is_causal=True,
)


def within(window: int) -> AttentionMask:
    """Return the mask of a layer whose tokens attend to those at a distance of at most `window`."""
    return AttentionMask(
        "local",
        f"Tokens attend to those at a distance of at most {window}.",
        window=window,
    )


def choose_mask(settings: MaskSettings, default: AttentionMask) -> AttentionMask:
    """Return the causal mask if the settings ask for it, else the given one."""
    return CAUSAL if settings.causal else default
