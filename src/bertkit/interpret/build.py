"""Build pages and figures of attention, with tensors quantized to bytes."""

from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float, Int16
from torch import Tensor

from bertkit.base.errors import InputError, SettingsError
from bertkit.interpret.ablation import HeadName, check_heads
from bertkit.interpret.capture import AttentionHeads
from bertkit.interpret.figures.alignment_figure import AlignmentFigure
from bertkit.interpret.figures.attention_figure import MAX_TOKENS, AttentionFigure
from bertkit.interpret.findings import state_view
from bertkit.interpret.inspected_model import EncodedText
from bertkit.interpret.opening import Start, choose_start, state_finding
from bertkit.interpret.views.table import choose_views
from bertkit.interpret.views.view import View, ViewInputs
from bertkit.reports.interactive import (
    ENTRY,
    InteractivePage,
    page_modules,
    read_modules,
    read_styles,
)

INT8_STEPS = 127
INT16_STEPS = 32767


def pack_weights(layers: Sequence[AttentionHeads]) -> dict[str, bytes]:
    """Quantize the attention weights of each layer, keyed by the name that scripts use."""
    # A weight w is the byte b = round(255 √w), and read back as (b / 255)². The square root
    # preserves weak attention: the smallest value above 0 is 1/65,025.
    return {
        f"weights-{number}": (
            layer.weights.float().sqrt().mul(255).round().to("cpu", torch.uint8).numpy().tobytes()
        )
        for number, layer in enumerate(layers, 1)
    }


def pack_residuals(layers: Sequence[AttentionHeads]) -> dict[str, bytes]:
    """Quantize what `pack_weights` rounds off, so that a page can show weights to 0.01 %."""
    # The residual r, an int8, makes the byte b more precise: w = ((b + r / 254) / 255)². Both
    # compress better, by 4 to 13 %, than one array of 16 bits.
    packed = {}
    for number, layer in enumerate(layers, 1):
        roots = layer.weights.float().sqrt().mul(255)
        steps = (roots - roots.round()).mul(2 * INT8_STEPS).round()
        packed[f"residuals-{number}"] = steps.to("cpu", torch.int8).numpy().tobytes()
    return packed


def pack_vectors(
    layers: Sequence[AttentionHeads],
) -> tuple[dict[str, bytes], list[list[list[float]]]]:
    """Quantize query, key and value of each layer to int16, with the scale of each head."""
    arrays, scales = {}, []
    for number, layer in enumerate(layers, 1):
        parts = [_quantize(part) for part in (layer.query, layer.key, layer.value)]
        arrays[f"vectors-{number}"] = b"".join(steps.numpy().tobytes() for steps, _ in parts)
        scales.append([part_scales for _, part_scales in parts])
    return arrays, scales


def _quantize(
    part: Float[Tensor, "heads length features"],
) -> tuple[Int16[Tensor, "heads length features"], list[float]]:
    """Quantize to int16 symmetrically for each head; return the values and each head's scale."""
    part = part.float().cpu()
    scales = part.abs().amax(dim=(1, 2)) / INT16_STEPS
    scales[scales == 0] = 1.0
    return (part / scales[:, None, None]).round().to(torch.int16), scales.tolist()


MAX_LISTED_TOKENS = 40


def draw_heads(
    inputs: ViewInputs, title: str, layer: int, head: int, focus: int | None
) -> AttentionFigure:
    """Draw one head's attention, or only that of a token, which is counted from 0."""
    observation = inputs.observation
    encoded, attended = observation.encoded, observation.attended
    check_heads([HeadName(layer, head)], observation.config)
    longest = max(len(encoded.tokens), len((attended or encoded).tokens))
    if longest > MAX_TOKENS:
        raise InputError(
            f"a figure has room for {MAX_TOKENS} tokens, and the text has {longest}; shorten it,"
            " or use the page"
        )
    weights: list[list[float]] = observation.layers[layer - 1].weights[head - 1].tolist()
    if focus is not None and observation.next_words is not None and attended is not None:
        chosen = inputs.inspected.tokenizer.vocabulary[observation.next_words.ids[focus]]
        title += f", after “{encoded.tokens[focus]}”, predicting “{chosen}”"
    others = observation.attended_tokens
    return AttentionFigure(title, encoded.tokens, weights, focus, attended_tokens=others)


def draw_alignment(
    inputs: ViewInputs, title: str, layer: int | None, head: int | None
) -> AlignmentFigure:
    """Draw cross-attention as a grid; arguments and errors as in `AttentionView.alignment`."""
    observation = inputs.observation
    if observation.attended is None or observation.next_words is None:
        raise SettingsError(
            "an alignment needs cross-attention, and this is self-attention of"
            f" {inputs.inspected.name}; choose another attention or an encoder-decoder"
        )
    named = HeadName(*(1 if each is None else each for each in (layer, head)))
    check_heads([named], observation.config)
    chosen = observation.layers if layer is None else [observation.layers[layer - 1]]
    weights = torch.stack([one.weights.float().cpu() for one in chosen]).mean(dim=0)
    shares = weights.mean(dim=0) if head is None else weights[head - 1]
    vocabulary = inputs.inspected.tokenizer.vocabulary
    written = [vocabulary[id_] for id_ in observation.next_words.ids]
    return AlignmentFigure(title, written, observation.attended.tokens, shares.tolist())


def find_token(encoded: EncodedText, token: str) -> int:
    """Return the position, from 0, of a token given by its text or its number from 1."""
    return find_named(encoded.tokens, token)


def find_named(tokens: Sequence[str], token: str) -> int:
    """Return the position of a token among these; arguments as in `find_token`."""
    if token in tokens:
        return tokens.index(token)
    if token.isdecimal() and len(token) < 8 and 1 <= int(token) <= len(tokens):
        return int(token) - 1
    more = " …" if len(tokens) > MAX_LISTED_TOKENS else ""
    raise InputError(
        f"there is no token {token!r:.40}; the tokens are"
        f" {' '.join(tokens[:MAX_LISTED_TOKENS])}{more}"
    )


# Beyond this, query, key, value and the last digits of weights would dominate the page's size.
MAX_TOKENS_WITH_VECTORS = 128
LEFT_TO_RIGHT = (
    "This is a left-to-right model: a token attends to itself and to the tokens before it, never to"
    " those after it. The first token attends only to itself."
)
# The attentions of an encoder-decoder, in the order shown to the reader.
PARTS = {
    "cross": {
        "title": "from target to source",
        "about": "Cross-attention: which source tokens the decoder attends to.",
    },
    "encoder": {
        "title": "within the source",
        "about": "The encoder's self-attention: how the source tokens attend to each other.",
    },
    "decoder": {
        "title": "within the target",
        "about": "The decoder's self-attention: how target tokens attend to earlier ones.",
    },
}


def build_page(
    inputs: ViewInputs,
    views: Sequence[str] | None = None,
    *,
    start: Start | None = None,
    all_vectors: bool = False,
) -> InteractivePage:
    """Build the page of one text.

    Args:
        inputs: the model and its observation.
        views: names of `VIEWS`, in the order of their tabs; None for all that support the model.
        start: the initial selection; None for the most telling one.
        all_vectors: include query, key and value for any number of tokens; otherwise only for up
            to `MAX_TOKENS_WITH_VECTORS`.
    """
    chosen = _choose(inputs, views)
    _check_shown(chosen, inputs)
    start = start or choose_start(inputs)
    data, arrays = _build_part(inputs, chosen, start, all_vectors=all_vectors)
    return _assemble(_title(inputs, start), chosen, data, arrays)


def build_joint_page(
    scenes: Mapping[str, ViewInputs],
    views: Sequence[str] | None = None,
    *,
    shown: str = "cross",
    start: Start | None = None,
    all_vectors: bool = False,
) -> InteractivePage:
    """Build one page with all attentions of an encoder-decoder, to switch between.

    Args:
        scenes: the scenes of one pass, keyed by the names of `PARTS`.
        views: as in `build_page`; each attention shows those that suit it.
        shown: the attention that is shown initially, if it has a view.
        start: the initial selection there; None for the most telling one.
        all_vectors: as in `build_page`.
    """
    parts, arrays, used = [], dict[str, bytes](), dict[str, View]()
    shown_start = start or choose_start(scenes[shown])
    for name, about in PARTS.items():
        inputs = scenes[name]
        chosen = _choose(inputs, views)
        begin = shown_start if name == shown else choose_start(inputs)
        if chosen:
            part, packed = _build_part(
                inputs, chosen, begin, all_vectors=all_vectors, prefix=f"{name}-"
            )
            parts.append({**part, **about, "name": name})
            arrays |= packed
            used |= {view.name: view for view in chosen}
    cross = scenes["cross"]
    _check_shown(parts, cross)
    assert cross.observation.attended is not None
    texts = [cross.observation.attended.text, cross.observation.encoded.text]
    shared = {
        "name": cross.inspected.name,
        "texts": texts,
        "labels": ["source", "target"],
        "shown": shown,
        "parts": parts,
    }
    title = _title(scenes[shown], shown_start)
    return _assemble(title, list(used.values()), shared, arrays)


def _title(inputs: ViewInputs, start: Start) -> str:
    """Return the title of a page: what the selected token attends to, or else the model."""
    finding = state_finding(inputs, start)
    return f"Attention of {inputs.inspected.name}" if finding is None else finding.title


def _assemble(
    title: str, views: Sequence[View], data: dict[str, Any], arrays: dict[str, bytes]
) -> InteractivePage:
    """Assemble the page from its views, data and arrays."""
    folder = resources.files("bertkit.interpret").joinpath("views")
    return InteractivePage(
        title=title,
        modules={**page_modules(), **read_modules(folder), ENTRY: _entry(views)},
        styles=list(read_styles(folder).values()),
        data=data,
        arrays=arrays,
    )


def _build_part(
    inputs: ViewInputs, views: Sequence[View], start: Start, *, all_vectors: bool, prefix: str = ""
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return one attention's data on a page and its arrays, whose names begin with the prefix."""
    observation = inputs.observation
    arrays = pack_weights(observation.layers)
    scales: list[list[list[float]]] = []
    passages = filter(None, [observation.encoded, observation.attended])
    longest = max(len(encoded.tokens) for encoded in passages)
    if all_vectors or longest <= MAX_TOKENS_WITH_VECTORS:
        vectors, scales = pack_vectors(observation.layers)
        arrays |= vectors | pack_residuals(observation.layers)
    shared = _shared_data(inputs)
    data = {
        **shared,
        "prefix": prefix,
        "scales": scales,
        "start": _start(inputs, start),
        "startsWhole": start.is_mean,
        "views": [_view_data(view, inputs, start, shared["patterns"]) for view in views],
    }
    return data, {f"{prefix}{name}": content for name, content in arrays.items()}


def _choose(inputs: ViewInputs, names: Sequence[str] | None) -> list[View]:
    """Return the requested views that support the inputs."""
    return [view for view in choose_views(names) if view.supports(inputs)]


def _check_shown(shown: Sequence[object], inputs: ViewInputs) -> None:
    """Raise a `SettingsError` for a page without a view."""
    if not shown:
        raise SettingsError(
            f"{inputs.inspected.name} supports none of these views; name others, or none for all"
            " that it supports"
        )


def _entry(views: Sequence[View]) -> str:
    """Return the entry module, which passes the views' scripts to the page."""
    names = [f"view{number}" for number in range(1, len(views) + 1)]
    imports = [
        f'import {{ view as {name} }} from "./{view.name}.js";\n'
        for name, view in zip(names, views, strict=True)
    ]
    begin = f'import {{ start }} from "./frame.js";\n\nstart([{", ".join(names)}]);\n'
    return "".join([*imports, begin])


def _shared_data(inputs: ViewInputs) -> dict[str, Any]:
    """Return the data that all views share."""
    observation, config = inputs.observation, inputs.observation.config
    encoded, attended = observation.encoded, observation.attended
    return {
        "model": {
            "name": inputs.inspected.name,
            "layers": config.num_hidden_layers,
            "heads": config.num_attention_heads,
            "features": config.hidden_size // config.num_attention_heads,
        },
        "texts": [encoded.text, encoded.pair],
        "tokens": _tokens(encoded),
        "others": None if attended is None else _tokens(attended),
        "isCausal": observation.is_causal,
        "patterns": [
            [vars(pattern) for pattern in observation.find_patterns(layer)]
            for layer in range(1, config.num_hidden_layers + 1)
        ],
        "without": [str(name) for name in inputs.without],
    }


def _tokens(encoded: EncodedText) -> list[dict[str, Any]]:
    """Return the data of each token; offsets are in UTF-16 units, as in JavaScript strings."""
    encoding = encoded.encoding
    units = [
        list(accumulate((2 if ord(letter) > 0xFFFF else 1 for letter in text), initial=0))
        for text in (encoded.text, encoded.pair or "")
    ]
    rows = zip(
        encoding.tokens, encoding.token_type_ids, encoded.words, encoding.offsets, strict=True
    )
    return [
        {
            "text": text,
            "segment": segment,
            "word": word,
            "start": units[segment][start],
            "stop": units[segment][stop],
            "special": word < 0,
        }
        for text, segment, word, (start, stop) in rows
    ]


def _view_data(
    view: View, inputs: ViewInputs, start: Start, patterns: list[list[dict[str, Any]]]
) -> dict[str, Any]:
    """Return the data of a view's tab."""
    legend = view.cross_legend or view.legend if inputs.is_cross_attention else view.legend
    if inputs.observation.is_causal:
        legend = (*legend, LEFT_TO_RIGHT)
    data = inputs.collect(view)
    heading = state_view(view, inputs, start, {**data, "patterns": patterns})
    return {
        "name": view.name,
        "title": view.title,
        "heading": heading,
        "legend": legend,
        "data": data,
    }


def _start(inputs: ViewInputs, start: Start) -> dict[str, Any]:
    """Return the initial selection as data."""
    config = inputs.observation.config
    layer, head = (1 if each is None else each for each in (start.layer, start.head))
    check_heads([HeadName(layer, head)], config)
    heads = list(range(1, config.num_attention_heads + 1)) if start.head is None else [head]
    chosen = {"layer": layer, "heads": heads, "head": head}
    return {**chosen, "token": start.token, "side": "from", "pairs": "all"}
