"""Build interactive pages of attention."""

from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import accumulate

import torch

from bertkit.base.errors import InputError, SettingsError
from bertkit.interpret.ablation import HeadName, check_heads
from bertkit.interpret.capture import AttentionHeads
from bertkit.interpret.findings import state_view
from bertkit.interpret.observation import EncodedText
from bertkit.interpret.opening import Start, choose_start, state_finding
from bertkit.interpret.views.table import choose_views
from bertkit.interpret.views.view import View, ViewInputs
from bertkit.reports.interactive import ENTRY, InteractivePage, JsonObject, page_modules, read_files
from bertkit.tokenization.names import OF_BERT, SpecialTokens

# Maximum attention weights of a page: 2 GiB while building. BERT-Large at 512 tokens has a fifth.
MAX_WEIGHTS = 1 << 29
# Beyond this, query, key, value and the last digits of weights would dominate the page's size.
MAX_TOKENS_WITH_VECTORS = 128
# Tensors are quantized to bytes, which scripts of a page read back.
INT8_STEPS = 127
INT16_STEPS = 32767


def build_page(
    inputs: ViewInputs | Sequence[ViewInputs],
    views: Sequence[str] | None = None,
    *,
    shown: str | None = None,
    start: Start | None = None,
    all_vectors: bool = False,
) -> InteractivePage:
    """Build the page of one text, or of all attentions of a model, to switch between.

    Args:
        inputs: the model and its observation; or those of several attentions of one pass.
        views: names of `VIEWS`, in the order of their tabs; None for all that support the model.
            Each of several attentions shows those that suit it.
        shown: the name of the attention that is shown initially, if it has a view; by default the
            first.
        start: the initial selection there; None for the most telling one.
        all_vectors: include query, key and value for any number of tokens; otherwise only for up
            to `MAX_TOKENS_WITH_VECTORS`.

    Raises:
        SettingsError: no view suits.
        InputError: there are too many attention weights for a page.
    """
    scenes = [inputs] if isinstance(inputs, ViewInputs) else list(inputs)
    check_size(scenes)
    [begin, *_] = [one for one in scenes if shown in (None, one.observation.part.name)]
    start = start or choose_start(begin)
    parts, arrays, used = [], dict[str, bytes](), dict[str, View]()
    for scene in scenes:
        chosen = [view for view in choose_views(views) if view.supports(scene)]
        if chosen:
            selection = start if scene is begin else choose_start(scene)
            part, packed = _build_part(scene, chosen, selection, all_vectors=all_vectors)
            parts.append(part)
            arrays |= packed
            used |= {view.name: view for view in chosen}
    if not parts:
        raise SettingsError(
            f"{begin.inspected.name} supports none of these views; name others, or none for all"
            " that it supports"
        )
    finding = state_finding(begin, start)
    title = f"Attention of {begin.inspected.name}" if finding is None else finding.title
    data = parts[0] if len(scenes) == 1 else _join(scenes, begin, parts)
    folder = resources.files("bertkit.interpret").joinpath("views")
    names = {name: f"view{number}" for number, name in enumerate(used, start=1)}
    imports = [f'import {{ view as {name} }} from "./{view}.js";\n' for view, name in names.items()]
    entry = f'import {{ start }} from "./frame.js";\n\nstart([{", ".join(names.values())}]);\n'
    return InteractivePage(
        title=title,
        modules={**page_modules(), **read_files(folder, ".js"), ENTRY: "".join([*imports, entry])},
        styles=list(read_files(folder, ".css").values()),
        data=data,
        arrays=arrays,
    )


def check_size(scenes: Iterable[ViewInputs]) -> None:
    """Raise an `InputError` for a page too large for a laptop's memory, before it is built."""
    num_weights = 0
    for observation in (inputs.observation for inputs in scenes):
        num_pairs = len(observation.encoded.tokens) * len(observation.columns.tokens)
        num_heads = observation.config.num_attention_heads
        num_weights += observation.config.num_hidden_layers * num_heads * num_pairs
    if num_weights > MAX_WEIGHTS:
        raise InputError(
            f"the page would have {num_weights:,} attention weights, and a page has room"
            f" for {MAX_WEIGHTS:,}; shorten the text, or write the numbers of one layer with --json"
            " --layer"
        )


def _join(
    scenes: Sequence[ViewInputs], begin: ViewInputs, parts: Sequence[JsonObject]
) -> JsonObject:
    """Return the data of a page of several attentions."""
    [between] = [scene.observation for scene in scenes if scene.has_two_texts]
    return {
        "name": begin.inspected.name,
        "texts": [between.columns.text, between.encoded.text],
        "labels": between.part.sides,
        "shown": begin.observation.part.name,
        "parts": parts,
    }


def _build_part(
    inputs: ViewInputs, views: Sequence[View], start: Start, *, all_vectors: bool
) -> tuple[JsonObject, dict[str, bytes]]:
    """Return one attention's data on a page and its arrays, whose names begin with its name."""
    observation = inputs.observation
    arrays = pack_weights(observation.layers)
    scales: list[list[list[float]]] = []
    longest = max(len(text.tokens) for text in (observation.encoded, observation.columns))
    if all_vectors or longest <= MAX_TOKENS_WITH_VECTORS:
        vectors, scales = pack_vectors(observation.layers)
        arrays |= vectors | pack_residuals(observation.layers)
    patterns = [
        [vars(pattern) for pattern in observation.find_patterns(layer)]
        for layer in range(1, observation.config.num_hidden_layers + 1)
    ]
    part = observation.part
    prefix = f"{part.name}-" if part.name else ""
    names = {"title": part.title, "about": part.about, "name": part.name} if part.name else {}
    data: JsonObject = {
        **_shared_data(inputs),
        "patterns": patterns,
        "prefix": prefix,
        "scales": scales,
        "start": _start(inputs, start),
        "startsWhole": start.is_mean,
        "views": [_view_data(view, inputs, start, patterns) for view in views],
        **names,
    }
    return data, {f"{prefix}{name}": content for name, content in arrays.items()}


def _shared_data(inputs: ViewInputs) -> JsonObject:
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
        "numAllowed": observation.allowed.sum(dim=1).tolist(),
        "without": [str(name) for name in observation.without],
    }


def _tokens(encoded: EncodedText) -> list[JsonObject]:
    """Return the data of each token; offsets are in UTF-16 units, as in JavaScript strings."""
    encoding = encoded.encoding
    units = [
        list(accumulate((2 if ord(letter) > 0xFFFF else 1 for letter in text), initial=0))
        for text in (encoded.text, encoded.pair or "")
    ]
    rows = zip(encoding.tokens, encoded.sides, encoded.words, encoding.offsets, strict=True)
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
    view: View, inputs: ViewInputs, start: Start, patterns: Sequence[Sequence[JsonObject]]
) -> JsonObject:
    """Return the data of a view's tab."""
    observation, data = inputs.observation, inputs.collect(view)
    legend = observation.part.legends.get(view.name, view.legend)
    return {
        "name": view.name,
        "title": view.title,
        "heading": state_view(view, inputs, start, {**data, "patterns": patterns}),
        "legend": [
            name_special(text, observation.encoded.special)
            for text in filter(None, [*legend, observation.note])
        ],
        "data": data,
    }


def name_special(text: str, special: SpecialTokens) -> str:
    """Return a text on BERT's special tokens with those of another tokenizer."""
    for token, own in zip(OF_BERT, special, strict=True):
        text = text.replace(token, own)
    return text


def _start(inputs: ViewInputs, start: Start) -> JsonObject:
    """Return the initial selection as data."""
    config = inputs.observation.config
    layer, head = (1 if number is None else number for number in (start.layer, start.head))
    check_heads([HeadName(layer, head)], config)
    heads = list(range(1, config.num_attention_heads + 1)) if start.head is None else [head]
    selection = {"head": head, "token": start.token, "side": "from", "pairs": "all"}
    return {"layer": layer, "heads": heads, **selection}


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
        content, scales_of_layer = b"", []
        for part in (layer.query, layer.key, layer.value):
            values = part.float().cpu()
            sizes = values.abs().amax(dim=(1, 2)) / INT16_STEPS  # of a step, for each head
            sizes[sizes == 0] = 1.0
            content += (values / sizes[:, None, None]).round().to(torch.int16).numpy().tobytes()
            scales_of_layer.append(sizes.tolist())
        arrays[f"vectors-{number}"] = content
        scales.append(scales_of_layer)
    return arrays, scales
