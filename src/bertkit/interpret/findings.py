"""State in one line what each tab of a page shows about the text."""

from collections import Counter
from collections.abc import Callable, Sequence

import torch

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.opening import Start, find_key, state_finding
from bertkit.interpret.views.view import Collected, View, ViewInputs
from bertkit.reports.text import format_percent

Data = Collected  # that a view collected, and the "patterns" of all heads


def state_view(view: View, inputs: ViewInputs, start: Start, data: Data) -> str:
    """Return the heading of a tab: its finding, or else the view and the model."""
    name = inputs.inspected.name
    find = FINDERS.get(view.name)
    finding = None if find is None else find(inputs, start, data)
    other = f"Attention of {name}" if view.name == "heads" else f"{view.title}: {name}"
    return finding or other


def _find_weight(inputs: ViewInputs, start: Start, _: Data) -> str | None:
    finding = state_finding(inputs, start)
    return None if finding is None else finding.title


def _find_score(inputs: ViewInputs, start: Start, _: Data) -> str | None:
    """State the score and the weight between the token of the page and the word it attends to."""
    key = find_key(inputs, start)
    if key is None or start.layer is None or start.head is None:
        return None
    observation, name = inputs.observation, HeadName(start.layer, start.head)
    token = observation.encoded.tokens[start.token or 0]
    other = observation.columns.tokens[key]
    heads = observation.layers[name.layer - 1]
    place = name.head - 1, start.token or 0, key
    score, weight = float(heads.scores[place]), float(heads.weights[place])
    return (
        f"Query “{token}” and key “{other}” score {score:.2f} in head {name}; softmax makes that"
        f" {format_percent(weight)}"
    )


def _find_swap(_: ViewInputs, __: Start, data: Data) -> str | None:
    """State how similar the text stays when two words are swapped."""
    if data["swap"] is None:
        return None
    first, second = data["swap"]["words"]
    _name, with_positions, without_positions = data["swap"]["rows"][-1]
    return (
        f"Swapping “{first}” and “{second}”: cosine {with_positions:.3f} with positions,"
        f" {without_positions:.3f} without"
    )


def _count_patterns(_: ViewInputs, __: Start, data: Data) -> str:
    names = [pattern["name"] for heads in data["patterns"] for pattern in heads]
    counts = Counter(names).most_common()
    listed = ", ".join(f"{count} {name}" for name, count in counts)
    return f"Patterns of the {len(names)} heads: {listed}"


def _find_important_head(_: ViewInputs, __: Start, data: Data) -> str | None:
    """State the head whose removal changes the prediction, or the text's vector, most."""
    rows: Sequence[Sequence[float]] | None = data["ablation"]
    if rows is None:
        return None
    change, name = max(
        (
            (value, HeadName(layer, head))
            for layer, heads in enumerate(rows, start=1)
            for head, value in enumerate(heads, start=1)
        ),
        key=lambda pair: abs(pair[0]),
    )
    if change == 0:
        return None
    if data["kind"] == "vector":
        return f"Removing head {name} changes the text's vector most: cosine distance {change:.2g}"
    return f"Removing head {name} changes the predicted {data['kind']} most: by {change:+.2g}"


def _find_received(inputs: ViewInputs, _: Start, data: Data) -> str | None:
    """State the word that receives most attention, on average over all heads."""
    encoded = inputs.observation.columns
    words = [token for token, word in enumerate(encoded.words) if word >= 0]
    if not words:
        return None
    received: list[float] = torch.tensor(data["received"]).mean(dim=(0, 1)).tolist()
    most = max(words, key=lambda token: received[token])
    return (
        f"Of all words “{encoded.tokens[most]}” receives most attention: {received[most]:.1f} times"
        " an even share, over all heads"
    )


def _find_nearest(inputs: ViewInputs, start: Start, data: Data) -> str | None:
    """State which token is nearest to that of the page after the last layer."""
    tokens, nearest = inputs.observation.encoded.tokens, data["nearest"][-1]
    pairs = [
        (token, *neighbors[0])
        for token, neighbors in enumerate(nearest)
        if neighbors and token in data["words"]
    ]
    if not pairs:
        return None
    chosen = [pair for pair in pairs if pair[0] == start.token]
    token, other, cosine = chosen[0] if chosen else max(pairs, key=lambda pair: pair[2])
    return (
        f"After the last layer “{tokens[token]}” is nearest to “{tokens[other]}”, with cosine"
        f" {cosine:.2f}"
    )


FINDERS: dict[str, Callable[[ViewInputs, Start, Data], str | None]] = {
    "heads": _find_weight,
    "neurons": _find_score,
    "inputs": _find_swap,
    "model": _count_patterns,
    "tokens": _find_received,
    "importance": _find_important_head,
    "geometry": _find_nearest,
}
