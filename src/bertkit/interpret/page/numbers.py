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
    subject, observation = view.scene.subject, view.scene.observation
    chosen, config = view.settings, observation.config
    layers = range(1, config.num_hidden_layers + 1) if chosen.layer is None else [chosen.layer]
    heads = [one for layer in layers for one in _tell_layer(view, layer)]
    return {
        "model": subject.name,
        **_tell_texts(view),
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "without": [str(name) for name in view.scene.without],
        "token": view.token,
        "heads": heads,
    }


def _tell_texts(view: AttentionView) -> dict[str, Any]:
    """Return the texts and tokens; for an encoder-decoder, of both source and target."""
    passage, others = view.scene.observation.passage, view.scene.observation.others
    if not view.parts:
        return {"texts": [passage.text, passage.pair], "tokens": passage.tokens}
    read, written = (view.parts[name].observation.passage for name in ("encoder", "decoder"))
    return {
        "texts": [read.text, written.text],
        "attention": view.settings.attention or "cross",
        "tokens": passage.tokens,
        "others": None if others is None else others.tokens,
    }


def _tell_layer(view: AttentionView, layer: int) -> list[dict[str, Any]]:
    chosen, weights = view.settings.head, view.weights(layer).float().cpu()
    told: list[dict[str, Any]] = []
    others, is_causal = view.scene.observation.others, view.scene.observation.is_causal
    seen = None if others is None else others.tokens
    patterns = find_patterns(weights, view.tokens, seen, is_causal=is_causal)
    for head, pattern in enumerate(patterns, start=1):
        if chosen not in (None, head):
            continue
        one = {"layer": layer, "head": head, "pattern": pattern.name}
        told.append(one | {"entropy": round(pattern.entropy, DIGITS)})
        if view.token is not None:
            told[-1]["weights"] = _round(weights[head - 1, view.token].tolist())
        elif chosen is not None:
            told[-1]["weights"] = [_round(row) for row in weights[head - 1].tolist()]
    return told


def _round(weights: list[float]) -> list[float]:
    return [round(weight, DIGITS) for weight in weights]
