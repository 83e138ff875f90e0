"""The attention of heads on a text as plain numbers, for other programs."""

from typing import Any

from bertkit.interpret.page.attention_view import AttentionView
from bertkit.interpret.patterns import find_patterns

DIGITS = 6  # after the point


def gather_numbers(view: AttentionView) -> dict[str, Any]:
    """Return the tokens and the pattern and entropy of each head as plain data.

    Covers all heads, those of the selected layer, or the selected head. To limit the size, weights
    are included only for the selected token, or else for the selected head.
    """
    chosen, config = view.settings.layer, view.inputs.observation.config
    layers = range(1, config.num_hidden_layers + 1) if chosen is None else [chosen]
    return {
        "model": view.inputs.inspected.name,
        **_list_texts(view),
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "without": [str(name) for name in view.inputs.without],
        "token": view.token,
        "heads": [head for layer in layers for head in _list_heads(view, layer)],
    }


def _list_texts(view: AttentionView) -> dict[str, Any]:
    """Return the texts and tokens; for an encoder-decoder, of both source and target."""
    encoded, attended = view.inputs.observation.encoded, view.inputs.observation.attended
    if not view.parts:
        return {"texts": [encoded.text, encoded.pair], "tokens": encoded.tokens}
    source, target = (view.parts[name].observation.encoded for name in ("encoder", "decoder"))
    return {
        "texts": [source.text, target.text],
        "attention": view.settings.attention or "cross",
        "tokens": encoded.tokens,
        "others": None if attended is None else attended.tokens,
    }


def _list_heads(view: AttentionView, layer: int) -> list[dict[str, Any]]:
    """Return the data of the selected heads of a layer."""
    chosen, weights = view.settings.head, view.weights(layer).float().cpu()
    attended, is_causal = view.inputs.observation.attended, view.inputs.observation.is_causal
    attended_tokens = None if attended is None else attended.tokens
    patterns = find_patterns(weights, view.tokens, attended_tokens, is_causal=is_causal)
    heads: list[dict[str, Any]] = []
    for head, pattern in enumerate(patterns, start=1):
        if chosen in (None, head):
            entropy = round(pattern.entropy, DIGITS)
            data: dict[str, Any] = {
                "layer": layer,
                "head": head,
                "pattern": pattern.name,
                "entropy": entropy,
            }
            if view.token is not None:
                data["weights"] = _round(weights[head - 1, view.token].tolist())
            elif chosen is not None:
                data["weights"] = [_round(row) for row in weights[head - 1].tolist()]
            heads.append(data)
    return heads


def _round(weights: list[float]) -> list[float]:
    return [round(weight, DIGITS) for weight in weights]
