"""What heads do with a text, as numbers for other programs."""

from typing import Any

from bertkit.interpret.page.attention_view import AttentionView
from bertkit.interpret.patterns import find_patterns

DIGITS = 6  # after the point


def gather_numbers(view: AttentionView) -> dict[str, Any]:
    """Tokens, and what each head does, as plain data.

    Of all heads, or those of the chosen layer, or the chosen one: its pattern and its entropy.
    Weights are told where they aren't too many: those of the chosen token, or else all of the
    chosen head.
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
    """What was read; of an encoder-decoder what was written, too."""
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
