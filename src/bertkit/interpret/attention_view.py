"""The attention of a model on a text as one object: a page, figures and numbers."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError, SettingsError
from bertkit.inference.settings import PrecisionName
from bertkit.interpret.ablation import HeadName, check_heads, count_layer
from bertkit.interpret.build import build_page, check_size
from bertkit.interpret.contexts import WordInContexts
from bertkit.interpret.figures.alignment_figure import AlignmentFigure
from bertkit.interpret.figures.attention_figure import MAX_TOKENS, AttentionFigure
from bertkit.interpret.inspected_model import AnyInspected, load_inspected_model
from bertkit.interpret.observation import PredictedWords
from bertkit.interpret.opening import Finding, Start, choose_start, state_finding
from bertkit.interpret.settings import ViewSettings
from bertkit.interpret.views.table import choose_views
from bertkit.interpret.views.view import View, ViewInputs
from bertkit.reports.interactive import InteractivePage, Json, JsonObject, write_page
from bertkit.reports.text import make_legible

FRAME_HEIGHT = 760  # pixels, in a notebook


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
        parts: the inputs of each attention, by name, if the model has several; else empty.
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
        model: str | Path | AnyInspected,
        text: str,
        pair: str | None = None,
        settings: ViewSettings | None = None,
        *,
        contexts: WordInContexts | None = None,
        device: str = "auto",
        revision: str | None = None,
        precision: PrecisionName = "auto",
    ) -> Self:
        """Run a model on a text, or a pair of texts, and return its view.

        Args:
            model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
                loaded model, such as an `InspectedModel`.
            text: the first text.
            pair: the second text; for an encoder-decoder, the target text to use in place of the
                text that the model generates.
            settings: the views to show and the initial selection.
            contexts: a word in several texts, for the view geometry.
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
        choose_views(settings.view_names)
        if isinstance(model, str | Path):
            model = load_inspected_model(model, device, revision=revision, precision=precision)
        scenes = {
            observation.part.name: ViewInputs(model, observation, contexts)
            for observation in model.observe_all(text, pair, settings)
        }
        [first, *_] = scenes
        shown = scenes[settings.attention or first]
        layer = count_layer(settings.layer, shown.observation.config)
        settings = settings.model_copy(update={"layer": layer})
        return cls(shown, settings, scenes if len(scenes) > 1 else {})

    @property
    def tokens(self) -> list[str]:
        """The tokens of the text, including special tokens."""
        return self.inputs.observation.encoded.tokens

    @property
    def token(self) -> int | None:
        """The index in `tokens` of the initially selected token, or None."""
        chosen = self.settings.token
        return None if chosen is None else self.inputs.observation.encoded.find(chosen)

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
        views = choose_views(self.settings.view_names)
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
        check_size(self._scenes)
        return build_page(
            self._scenes,
            [view.name for view in self._views],
            shown=self.inputs.observation.part.name,
            start=self.start,
            all_vectors="neurons" in (self.settings.view_names or ()),
        )

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

        Where the model has another text to attend to, the columns are its tokens.

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
        focus = None if token is None else self.inputs.observation.encoded.find(token)
        return self._draw(layer, head, focus)

    def opening_figure(self) -> AttentionFigure:
        """Draw the head and token that the page opens on.

        Raises:
            SettingsError: no head stands out, because the text is too short.
            InputError: there are over 128 tokens.
        """
        layer, head, token = self.start.layer, self.start.head, self.start.token
        if layer is None or head is None or token is None:
            raise SettingsError("a figure shows one head; choose it with --layer and --head")
        return self._draw(layer, head, token)

    def _draw(self, layer: int, head: int, focus: int | None) -> AttentionFigure:
        """Draw one head's attention, or only that of a token, which is counted from 0."""
        observation, title = self.inputs.observation, self._title(layer, head)
        tokens, others = observation.encoded.tokens, observation.columns.tokens
        weights: list[list[float]] = self.weights(layer)[head - 1].tolist()
        longest = max(len(tokens), len(others))
        if longest > MAX_TOKENS:
            raise InputError(
                f"a figure has room for {MAX_TOKENS} tokens, and the text has {longest}; shorten"
                " it, or use the page"
            )
        if observation.attended is None:
            return AttentionFigure(title, tokens, weights, focus)
        if focus is not None and observation.predicted is not None:
            chosen = self._name_words(observation.predicted)[focus]
            title += f", after “{tokens[focus]}”, predicting “{chosen}”"
        return AttentionFigure(title, tokens, weights, focus, attended_tokens=others)

    def _name_words(self, predicted: PredictedWords) -> list[str]:
        vocabulary = self.inputs.inspected.tokenizer.vocabulary
        return [vocabulary[id_] for id_ in predicted.ids]

    def alignment(self, layer: int | None = None, head: int | None = None) -> AlignmentFigure:
        """Draw attention between two texts: target tokens as rows, source tokens as columns.

        Each row is labeled with the token that is predicted in that step.

        Args:
            layer: from 1; None for the mean of all.
            head: from 1; None for the mean of all.

        Raises:
            SettingsError: there is no such head, or this view shows self-attention.
            InputError: a text has over 64 tokens.
        """
        observation = self.inputs.observation
        if observation.attended is None or observation.predicted is None:
            raise SettingsError(
                "an alignment needs attention from one text to another, and this is self-attention"
                f" of {self.inputs.inspected.name}; choose another attention, or a model that"
                " writes texts"
            )
        title = self._title(layer, head)
        chosen = observation.layers if layer is None else [observation.layers[layer - 1]]
        weights = torch.stack([heads.weights.float().cpu() for heads in chosen]).mean(dim=0)
        shares = weights.mean(dim=0) if head is None else weights[head - 1]
        words = self._name_words(observation.predicted)
        return AlignmentFigure(title, words, observation.attended.tokens, shares.tolist())

    def _title(self, layer: int | None, head: int | None) -> str:
        """Return the title of a figure of a head, or of a mean, that the model must have."""
        numbers = (1 if number is None else number for number in (layer, head))
        check_heads([HeadName(*numbers)], self.inputs.observation.config)
        layers = "all layers" if layer is None else f"layer {layer}"
        heads = "mean of all heads" if head is None else f"head {head}"
        name = self.inputs.observation.part.name
        part = f"{name}-attention, " if name else ""
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


DIGITS = 6  # after the point


def gather_numbers(view: AttentionView) -> JsonObject:
    """Return tokens, patterns and entropies, and the weights of the selected token or else head."""
    chosen, observation = view.settings.layer, view.inputs.observation
    config, encoded, attended = observation.config, observation.encoded, observation.attended
    layers = range(1, config.num_hidden_layers + 1) if chosen is None else [chosen]
    texts: dict[str, Json] = {"texts": [encoded.text, encoded.pair], "tokens": encoded.tokens}
    if view.parts:
        [between] = [part.observation for part in view.parts.values() if part.has_two_texts]
        texts |= {
            "texts": [between.columns.text, between.encoded.text],
            "attention": observation.part.name,
            "others": None if attended is None else attended.tokens,
        }
    return {
        "model": view.inputs.inspected.recorded_name,
        **texts,
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "without": [str(name) for name in observation.without],
        "token": view.token,
        "heads": [head for layer in layers for head in _list_heads(view, layer)],
    }


def _list_heads(view: AttentionView, layer: int) -> list[JsonObject]:
    """Return the data of the selected heads of a layer."""
    chosen, weights = view.settings.head, view.weights(layer).float().cpu()
    patterns = view.inputs.observation.find_patterns(layer)
    heads: list[JsonObject] = []
    for head, pattern in enumerate(patterns, start=1):
        if chosen in (None, head):
            data: dict[str, Json] = {"layer": layer, "head": head, "pattern": pattern.name}
            data["entropy"] = round(pattern.entropy, DIGITS)
            if view.token is not None:
                data["weights"] = _round(weights[head - 1, view.token].tolist())
            elif chosen is not None:
                data["weights"] = [_round(row) for row in weights[head - 1].tolist()]
            heads.append(data)
    return heads


def _round(weights: list[float]) -> list[float]:
    return [round(weight, DIGITS) for weight in weights]
