"""The kinds of a ModernBERT's layers in `config.json`, of which there are two spellings.

Published configs say how often a layer is global, and two bases of rotary positions; transformers 5
writes the kind of each layer, and the parameters of rotary positions for each kind. The published
spelling is the one that all versions read, so it is the one that is kept.
"""

from collections.abc import Mapping
from typing import Any

GLOBAL, LOCAL = "full_attention", "sliding_attention"
THETAS = {GLOBAL: "global_rope_theta", LOCAL: "local_rope_theta"}


def read_layers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config in the published spelling; `layer_types` stays where no step describes it.

    Raises:
        ValueError: rotary positions are scaled, which isn't supported.
    """
    read = {name: value for name, value in values.items() if name != "rope_parameters"}
    if read.pop("rope_scaling", None) is not None:
        raise ValueError("rope_scaling isn't supported")
    rotary = values.get("rope_parameters")
    for kind, key in THETAS.items():
        found = rotary.get(kind) if isinstance(rotary, dict) else None
        if not isinstance(found, dict):
            continue
        if found.get("rope_type", "default") != "default":
            raise ValueError(f"rope_type {found['rope_type']!r:.80} isn't supported")
        if "rope_theta" in found:
            read[key] = found["rope_theta"]
    kinds = read.get("layer_types")
    is_whole = isinstance(kinds, list) and len(kinds) == read.get("num_hidden_layers")
    step = find_step(kinds) if is_whole and kinds else None
    if step is not None:
        del read["layer_types"]
        read["global_attn_every_n_layers"] = step
    return read


def find_step(kinds: list[Any]) -> int | None:
    """Return n if layer 0 and every n-th one after it are global and no others, else None."""
    step = kinds.index(GLOBAL, 1) if GLOBAL in kinds[1:] else len(kinds)
    wanted = [LOCAL if number % step else GLOBAL for number in range(len(kinds))]
    return step if kinds == wanted else None
