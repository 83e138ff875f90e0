"""Names of attention heads, as in the literature: 5.3 is the third head of the fifth layer."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from bertkit.base.errors import SettingsError
from bertkit.models.bert.config import BertConfig

FORM = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)


class HeadName(NamedTuple):
    """An attention head, named by layer and number.

    Attributes:
        layer: from 1; the input of layer 1 is the embeddings.
        head: from 1.
    """

    layer: int
    head: int

    def __str__(self) -> str:
        """Return the name, such as 5.3."""
        return f"{self.layer}.{self.head}"


def parse_heads(text: str, config: BertConfig) -> list[HeadName]:
    """Parse names such as "5.3,5.4"; duplicates are removed."""
    names = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        found = FORM.fullmatch(word)
        if found is None:
            raise SettingsError(
                f"expected heads such as 5.3,5.4 (layer 5, heads 3 and 4), got {word!r:.40}"
            )
        names.append(HeadName(int(found[1]), int(found[2])))
    if not names:
        raise SettingsError("name at least one head, such as 5.3 (layer 5, head 3)")
    return check_heads(names, config)


def check_heads(names: Iterable[tuple[int, int]], config: BertConfig) -> list[HeadName]:
    """Check that the model has all these heads and return them without duplicates."""
    checked = [HeadName(layer, head) for layer, head in dict.fromkeys(names)]
    num_layers, num_heads = config.num_hidden_layers, config.num_attention_heads
    for name in checked:
        if not (1 <= name.layer <= num_layers and 1 <= name.head <= num_heads):
            raise SettingsError(
                f"there is no head {name}: this model has layers 1 to {num_layers}, each with heads"
                f" 1 to {num_heads}"
            )
    return checked
