"""The page of a scene: what all views share, what each collects, and their scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from bertkit.base.errors import SettingsError
from bertkit.interpret.head_names import HeadName, check_heads
from bertkit.interpret.page_arrays import pack_vectors, pack_weights
from bertkit.interpret.patterns import find_patterns
from bertkit.interpret.scene import Scene
from bertkit.interpret.subject import Passage
from bertkit.interpret.views.table import VIEWS
from bertkit.interpret.views.view import View
from bertkit.reports.interactive import InteractivePage, page_modules, read_modules, read_styles
from bertkit.reports.modules import ENTRY

MAX_TOKENS_WITH_VECTORS = 128  # above, query, key and value would be most of the page


@dataclass(frozen=True)
class Start:
    """What is chosen when a page opens.

    Attributes:
        layer: from 1.
        head: from 1; None for all of the layer.
        token: from 0, as if it had been clicked; None for none.
    """

    layer: int = 1
    head: int | None = None
    token: int | None = None


def build_page(
    scene: Scene,
    views: Sequence[str] | None = None,
    *,
    start: Start = Start(),
    all_vectors: bool = False,
) -> InteractivePage:
    """The page of a scene.

    Args:
        scene: what is shown.
        views: names of `VIEWS`, in the order of their tabs; None for all that suit the scene.
        start: what is chosen when the page opens.
        all_vectors: keep query, key and value for any number of tokens; without it, for up to
            `MAX_TOKENS_WITH_VECTORS`.

    Raises:
        SettingsError: there is no such view or head, or no view suits the scene.
    """
    chosen = _choose(scene, views)
    layers = scene.observation.layers
    arrays = pack_weights(layers)
    scales: list[list[list[float]]] = []
    if all_vectors or len(scene.observation.passage.tokens) <= MAX_TOKENS_WITH_VECTORS:
        vectors, scales = pack_vectors(layers)
        arrays |= vectors
    folder = resources.files("bertkit.interpret").joinpath("views")
    return InteractivePage(
        title=f"What {scene.subject.name} looks at",
        modules={**page_modules(), **read_modules(folder), ENTRY: _entry(chosen)},
        styles=list(read_styles(folder).values()),
        data={
            **_shared_data(scene),
            "scales": scales,
            "start": _start(scene, start),
            "views": [_view_data(view, scene) for view in chosen],
        },
        arrays=arrays,
    )


def _choose(scene: Scene, names: Sequence[str] | None) -> list[View]:
    """The views of a page, each once."""
    unknown = [name for name in names or [] if name not in VIEWS]
    if unknown:
        raise SettingsError(f"there is no view {unknown[0]!r:.40}; there are: {', '.join(VIEWS)}")
    views = [VIEWS[name] for name in dict.fromkeys(VIEWS if names is None else names)]
    chosen = [view for view in views if view.suits(scene)]
    if not chosen:
        raise SettingsError(
            f"{scene.subject.name} has nothing for these views to show; name others, or none for"
            " all that suit it"
        )
    return chosen


def _entry(views: Sequence[View]) -> str:
    """The module that begins: it hands the views' scripts to the page."""
    names = [f"view{number}" for number in range(1, len(views) + 1)]
    imports = [
        f'import {{ view as {name} }} from "./{view.name}.js";\n'
        for name, view in zip(names, views, strict=True)
    ]
    begin = f'import {{ start }} from "./frame.js";\n\nstart([{", ".join(names)}]);\n'
    return "".join([*imports, begin])


def _shared_data(scene: Scene) -> dict[str, Any]:
    """What every view knows."""
    observation, config = scene.observation, scene.subject.model.config
    passage = observation.passage
    return {
        "model": {
            "name": scene.subject.name,
            "layers": config.num_hidden_layers,
            "heads": config.num_attention_heads,
            "features": config.hidden_size // config.num_attention_heads,
        },
        "texts": [passage.text, passage.pair],
        "tokens": _tokens(passage),
        "patterns": [
            [vars(pattern) for pattern in find_patterns(layer.weights, passage.tokens)]
            for layer in observation.layers
        ],
        "without": [str(name) for name in scene.without],
    }


def _tokens(passage: Passage) -> list[dict[str, Any]]:
    """What is known of each token; places count UTF-16 units, as JavaScript's strings do."""
    encoding = passage.encoding
    units = [_count_units(text) for text in (passage.text, passage.pair or "")]
    rows = zip(
        encoding.tokens, encoding.token_type_ids, passage.words, encoding.offsets, strict=True
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


def _count_units(text: str) -> list[int]:
    """For each place in a text, how many UTF-16 units are before it."""
    counts = [0]
    for character in text:
        counts.append(counts[-1] + (2 if ord(character) > 0xFFFF else 1))
    return counts


def _view_data(view: View, scene: Scene) -> dict[str, Any]:
    """What a view's tab needs."""
    shown = {"name": view.name, "title": view.title, "legend": view.legend}
    return {**shown, "data": view.collect(scene)}


def _start(scene: Scene, start: Start) -> dict[str, Any]:
    """What is chosen when the page opens."""
    config = scene.subject.model.config
    focus = 1 if start.head is None else start.head
    check_heads([HeadName(start.layer, focus)], config)
    heads = list(range(1, config.num_attention_heads + 1)) if start.head is None else [focus]
    chosen = {"layer": start.layer, "heads": heads, "head": focus}
    return {**chosen, "token": start.token, "side": "from", "pairs": "all"}
