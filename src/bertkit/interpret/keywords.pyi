# Written by `make reference` from the settings that `takes` names.

from typing import Literal
from typing import TypedDict


class ViewKeywords(TypedDict, total=False):
    attention: Literal['cross', 'encoder', 'decoder'] | None  # None
    without: str | None  # None
    views: str | None  # None
    layer: int | None  # None
    head: int | None  # None
    token: str | None  # None
    device: str  # 'auto'
    revision: str | None  # None
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
