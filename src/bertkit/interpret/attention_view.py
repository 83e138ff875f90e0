"""The attention of a model on a text as one object: a page, figures and numbers."""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from jaxtyping import Float
from torch import Tensor

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError, SettingsError
from bertkit.decoders.inspected_model import InspectedEncoderDecoder
from bertkit.inference.settings import PrecisionName
from bertkit.interpret.ablation import HeadName, ablate, check_heads, parse_heads
from bertkit.interpret.build import (
    build_joint_page,
    build_page,
    draw_alignment,
    draw_heads,
    find_token,
)
from bertkit.interpret.figures.alignment_figure import AlignmentFigure
from bertkit.interpret.figures.attention_figure import AttentionFigure
from bertkit.interpret.head_predictions import fills_words
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.opening import Finding, Start, choose_start, state_finding
from bertkit.interpret.settings import ViewSettings
from bertkit.interpret.views.table import VIEWS, choose_views
from bertkit.interpret.views.view import View, ViewInputs
from bertkit.models.open_model import OpenModel
from bertkit.reports.interactive import InteractivePage, write_page
from bertkit.reports.text import make_legible

FRAME_HEIGHT = 760  # pixels, in a notebook
# Maximum attention weights of a page: 2 GiB while building. BERT-Large at 512 tokens has a fifth.
MAX_WEIGHTS = 1 << 29


@dataclass(frozen=True, eq=False, repr=False)
class AttentionView:
    """An interactive view of a model's attention on a text; notebooks display it.

    Examples:
        view = AttentionView.of("all-MiniLM-L6-v2/", "The cat sat because it was tired.")
        view.write("attention.html")
        view.figure(5, 3, token="it").write("figure.svg")
        view.weights(5)[2]

    An encoder-decoder has three attentions: the page shows all; figures and numbers show the one
    that the settings select.

    Attributes:
        inputs: the model, the text, and the results of one forward pass.
        settings: the views to show and the initial selection.
        parts: the scenes of an encoder-decoder's attentions, by name; empty for other models.
    """

    inputs: ViewInputs
    settings: ViewSettings
    parts: Mapping[str, ViewInputs] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return a short form, without weights."""
        return f"AttentionView({self.inputs.inspected.name!r}, {' '.join(self.tokens)!r})"

    @classmethod
    def of(
        cls,
        model: str | Path | InspectedModel | InspectedEncoderDecoder,
        text: str,
        pair: str | None = None,
        settings: ViewSettings | None = None,
        *,
        device: str = "auto",
        revision: str | None = None,
        precision: PrecisionName = "auto",
    ) -> Self:
        """Run a model on a text, or a pair of texts, and return its view.

        Args:
            model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
                loaded model (`bertkit.interpret.InspectedModel` or `InspectedEncoderDecoder`).
            text: the first text.
            pair: the second text; for an encoder-decoder, the target text to use in place of the
                text that the model generates.
            settings: the views to show and the initial selection.
            device: auto, cpu, cuda or cuda:N; ignored for a loaded model.
            revision: a branch, tag or commit of a model of the Hub.
            precision: of the weights and matrix products, fp32 (auto) or bf16; ignored for a
                loaded model.

        Raises:
            SettingsError: a setting selects something that the model doesn't have.
            InputError: a text is empty or too long, or there is no such token.
            BertkitError: the model can't be loaded, as in `LoadedModel.load`.
        """
        settings = settings or ViewSettings()
        _list_views(settings)
        if isinstance(model, str | Path):
            model = load_inspected_model(model, device, revision=revision, precision=precision)
        if isinstance(model, InspectedEncoderDecoder):
            return cls._of_encoder_decoder(model, text, pair, settings)
        if settings.read_mask and not fills_words(model.model):
            raise SettingsError(
                f"read_mask is for masked language models, and {model.name} has no masked-LM head"
            )
        if settings.attention is not None:
            raise SettingsError(
                f"attention is for encoder-decoders, and {model.name} has only self-attention;"
                " leave it out"
            )
        config = model.model.config
        without = parse_heads(settings.without, config) if settings.without is not None else []
        check_heads([HeadName(settings.layer or 1, settings.head or 1)], config)
        encoded = model.read(text, pair, read_mask=settings.read_mask)
        if settings.token is not None:
            find_token(encoded, settings.token)
        with ablate(model.model, without):
            observation = model.observe(encoded)
        inputs = ViewInputs(model, observation, tuple(without), ablates_heads=settings.importance)
        return cls(inputs, settings)

    @classmethod
    def _of_encoder_decoder(
        cls, model: InspectedEncoderDecoder, text: str, written: str | None, settings: ViewSettings
    ) -> Self:
        """Run an encoder-decoder on a source text and its target text."""
        for name, is_set in (("without", settings.without), ("read_mask", settings.read_mask)):
            if is_set:
                raise SettingsError(
                    f"{name} is for BERTs, and {model.name} is an encoder-decoder; leave it out"
                )
        name = settings.attention or "cross"
        config = model.model.config
        half = config.encoder if name == "encoder" else config.decoder
        check_heads([HeadName(settings.layer or 1, settings.head or 1)], half)
        source = model.read(text)
        target = model.write(source) if written is None else model.read_target(written)
        observed = model.observe(source, target)
        if settings.token is not None:
            find_token(observed[name].encoded, settings.token)
        scenes = {part: ViewInputs(model, each) for part, each in observed.items()}
        return cls(scenes[name], settings, scenes)

    @property
    def tokens(self) -> list[str]:
        """The tokens of the text, including special tokens."""
        return self.inputs.observation.encoded.tokens

    @property
    def token(self) -> int | None:
        """The index in `tokens` of the initially selected token, or None."""
        chosen = self.settings.token
        return None if chosen is None else find_token(self.inputs.observation.encoded, chosen)

    @cached_property
    def start(self) -> Start:
        """The initial selection: that of the settings, completed with the most telling one."""
        return choose_start(self.inputs, self.settings.layer, self.settings.head, self.token)

    @property
    def finding(self) -> Finding | None:
        """What the initially selected token attends to most; None for too short a text."""
        return state_finding(self.inputs, self.start)

    def summarize(self) -> list[str]:
        """Return lines on the first view of the page, if it has some, or else the finding."""
        first = self._views[0]
        if first.summarize is not None:
            return first.summarize(self.inputs.collect(first))
        return [] if self.finding is None else list(vars(self.finding).values())

    @cached_property
    def _scenes(self) -> list[ViewInputs]:
        return list(self.parts.values()) or [self.inputs]

    @cached_property
    def _views(self) -> list[View]:
        """The requested views, which must suit the model, or all that do."""
        views = _list_views(self.settings)
        supported = [view for view in views if any(map(view.supports, self._scenes))]
        unsupported = [view.name for view in views if view not in supported]
        if unsupported and self.settings.views is not None:
            raise SettingsError(
                f"{self.inputs.inspected.name} doesn't support the view {unsupported[0]};"
                " leave it out"
            )
        return supported

    @cached_property
    def page(self) -> InteractivePage:
        """The interactive page with all selected views."""
        _check_size(self._scenes)
        names = [view.name for view in self._views]
        start, all_vectors = self.start, self.settings.neurons
        if self.parts:
            shown = self.settings.attention or "cross"
            return build_joint_page(
                self.parts, names, shown=shown, start=start, all_vectors=all_vectors
            )
        return build_page(self.inputs, names, start=start, all_vectors=all_vectors)

    def write(self, path: str | Path) -> FileRecord:
        """Write the page as one self-contained HTML file, replacing an existing file.

        Raises:
            SettingsError: a requested view doesn't support this model.
            InputError: the text is too long for a page.
            StorageError: writing failed.
        """
        return write_page(Path(path), self.page)

    def weights(self, layer: int) -> Float[Tensor, "heads length attended"]:
        """Return the attention weights of a layer, from 1: each row is a query and sums to 1.

        In cross-attention the columns are the source tokens.

        Raises:
            SettingsError: there is no such layer.
        """
        check_heads([HeadName(layer, 1)], self.inputs.observation.config)
        return self.inputs.observation.layers[layer - 1].weights

    def figure(self, layer: int, head: int, token: str | None = None) -> AttentionFigure:
        """Draw one head's attention as a static figure, for papers.

        Args:
            layer: from 1.
            head: from 1.
            token: draw only this token's attention, with numbers; named as in the settings.

        Raises:
            SettingsError: there is no such head.
            InputError: there is no such token, or there are over 128 of them.
        """
        encoded = self.inputs.observation.encoded
        focus = None if token is None else find_token(encoded, token)
        return draw_heads(self.inputs, self._title(layer, head), layer, head, focus)

    def opening_figure(self) -> AttentionFigure:
        """Draw the head and token that the page opens on.

        Raises:
            SettingsError: no head stands out, because the text is too short.
            InputError: there are over 128 tokens.
        """
        layer, head, token = self.start.layer, self.start.head, self.start.token
        if layer is None or head is None or token is None:
            raise SettingsError("a figure shows one head; choose it with --layer and --head")
        return draw_heads(self.inputs, self._title(layer, head), layer, head, token)

    def alignment(self, layer: int | None = None, head: int | None = None) -> AlignmentFigure:
        """Draw cross-attention as a grid: target tokens as rows, source tokens as columns.

        Each row is labeled with the token that is predicted in that step.

        Args:
            layer: from 1; None for the mean of all.
            head: from 1; None for the mean of all.

        Raises:
            SettingsError: there is no such head, or this view shows self-attention.
            InputError: a text has over 64 tokens.
        """
        return draw_alignment(self.inputs, self._title(layer, head), layer, head)

    def _title(self, layer: int | None, head: int | None) -> str:
        layers = "all layers" if layer is None else f"layer {layer}"
        heads = "mean of all heads" if head is None else f"head {head}"
        part = f"{self.settings.attention or 'cross'}-attention, " if self.parts else ""
        return f"{self.inputs.inspected.name}, {part}{layers}, {heads}"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the page in a sandboxed frame, isolated from the notebook."""
        title, page = (
            html.escape(text) for text in (make_legible(self.page.title), self.page.render())
        )
        return (
            f'<iframe title="{title}" sandbox="allow-scripts" width="100%"'
            f' height="{FRAME_HEIGHT}" frameborder="0" srcdoc="{page}"></iframe>'
        )


def load_inspected_model(
    path: str | Path,
    device: str = "auto",
    *,
    revision: str | None = None,
    precision: PrecisionName = "auto",
) -> InspectedModel | InspectedEncoderDecoder:
    """Load a model of any kind; arguments and errors as in `InspectedModel.load`."""
    opened = OpenModel.open(path, revision=revision)
    kind = InspectedEncoderDecoder if opened.is_encoder_decoder else InspectedModel
    return kind.load(opened, device, precision=precision)


def _check_size(scenes: Iterable[ViewInputs]) -> None:
    """Raise an `InputError` for a page too large for a laptop's memory, before it is built."""
    num_weights = 0
    for observation in (inputs.observation for inputs in scenes):
        encoded, config = observation.encoded, observation.config
        num_pairs = len(encoded.tokens) * len((observation.attended or encoded).tokens)
        num_weights += config.num_hidden_layers * config.num_attention_heads * num_pairs
    if num_weights > MAX_WEIGHTS:
        raise InputError(
            f"the page would have {num_weights:,} attention weights, and a page has room"
            f" for {MAX_WEIGHTS:,}; shorten the text, or write the numbers of one layer with --json"
            " --layer"
        )


def _list_views(settings: ViewSettings) -> list[View]:
    """Return the requested views, or all."""
    if settings.views is None:
        return choose_views(None)
    names = list(filter(None, map(str.strip, settings.views.split(","))))
    if not names:
        raise SettingsError(f"name at least one view, of {', '.join(VIEWS)}")
    return choose_views(names)


DIGITS = 6  # after the point


def gather_numbers(view: AttentionView) -> dict[str, Any]:
    """Return tokens, patterns and entropies, and the weights of the selected token or else head."""
    chosen, config = view.settings.layer, view.inputs.observation.config
    inspected = view.inputs.inspected
    opened = inspected.opened if isinstance(inspected, InspectedModel) else None
    layers = range(1, config.num_hidden_layers + 1) if chosen is None else [chosen]
    return {
        "model": opened.name if opened else inspected.name,
        **_list_texts(view),
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "without": [str(name) for name in view.inputs.without],
        "token": view.token,
        "heads": [head for layer in layers for head in _list_heads(view, layer)],
    }


def _list_texts(view: AttentionView) -> dict[str, Any]:
    """Return the texts and tokens; for an encoder-decoder, of both source and target."""
    observation, encoded = view.inputs.observation, view.inputs.observation.encoded
    if not view.parts:
        return {"texts": [encoded.text, encoded.pair], "tokens": encoded.tokens}
    source, target = (view.parts[name].observation.encoded for name in ("encoder", "decoder"))
    return {
        "texts": [source.text, target.text],
        "attention": view.settings.attention or "cross",
        "tokens": encoded.tokens,
        "others": observation.attended_tokens,
    }


def _list_heads(view: AttentionView, layer: int) -> list[dict[str, Any]]:
    """Return the data of the selected heads of a layer."""
    chosen, weights = view.settings.head, view.weights(layer).float().cpu()
    patterns = view.inputs.observation.find_patterns(layer)
    heads: list[dict[str, Any]] = []
    for head, pattern in enumerate(patterns, start=1):
        if chosen in (None, head):
            data: dict[str, Any] = {"layer": layer, "head": head, "pattern": pattern.name}
            data["entropy"] = round(pattern.entropy, DIGITS)
            if view.token is not None:
                data["weights"] = _round(weights[head - 1, view.token].tolist())
            elif chosen is not None:
                data["weights"] = [_round(row) for row in weights[head - 1].tolist()]
            heads.append(data)
    return heads


def _round(weights: list[float]) -> list[float]:
    return [round(weight, DIGITS) for weight in weights]
