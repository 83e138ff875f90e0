"""What a model does with a text, as one object: a page, figures, numbers."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from jaxtyping import Float
from torch import Tensor

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError, SettingsError
from bertkit.interpret.ablation import ablate
from bertkit.interpret.head_names import HeadName, check_heads, parse_heads
from bertkit.interpret.judgements import fills_words
from bertkit.interpret.page import Start, build_page
from bertkit.interpret.scene import Scene
from bertkit.interpret.subject import Passage, Subject
from bertkit.interpret.view_settings import ViewSettings
from bertkit.interpret.views.table import VIEWS
from bertkit.reports.attention_figure import MAX_TOKENS, AttentionFigure
from bertkit.reports.interactive import InteractivePage, write_page
from bertkit.reports.text import make_legible

FRAME_HEIGHT = 760  # pixels, in a notebook
MAX_LISTED_TOKENS = 40


@dataclass(frozen=True, eq=False)
class AttentionView:
    """What a model does with a text, to be looked at; in a notebook it shows itself.

    Examples:
        view = AttentionView.of("all-MiniLM-L6-v2/", "The cat sat because it was tired.")
        view.write("attention.html")
        view.figure(5, 3, token="it").write("figure.svg")
        view.weights(5)[2]

    Attributes:
        scene: the model, the text, and what one pass left behind.
        settings: what is shown, and where it begins.
    """

    scene: Scene
    settings: ViewSettings

    @classmethod
    def of(
        cls,
        model: str | Path | Subject,
        text: str,
        pair: str | None = None,
        settings: ViewSettings | None = None,
        *,
        device: str = "auto",
        revision: str | None = None,
    ) -> Self:
        """Let a model read a text, or a pair of texts.

        Args:
            model: a run of `bertkit pretrain`, a model folder, the id of a model of the Hub, or a
                model that is loaded already (`bertkit.interpret.Subject`).
            text: the first text.
            pair: the second text.
            settings: what is shown, and where it begins.
            device: auto, cpu, cuda or cuda:N; of a model that isn't loaded yet.
            revision: a branch, tag or commit of a model of the Hub.

        Raises:
            SettingsError: something is chosen that the model hasn't.
            InputError: a text has no word or too many, or there is no such token.
            BertkitError: the model can't be loaded, as in `LoadedModel.load`.
        """
        settings = settings or ViewSettings()
        _list_views(settings)
        if not isinstance(model, Subject):
            model = Subject.load(model, device, revision=revision)
        if settings.read_mask and not fills_words(model.model):
            raise SettingsError(
                f"read_mask is for models that fill words in, and {model.name} has no head for that"
            )
        config = model.model.config
        without = parse_heads(settings.without, config) if settings.without is not None else []
        check_heads([HeadName(settings.layer or 1, settings.head or 1)], config)
        passage = model.read(text, pair, read_mask=settings.read_mask)
        if settings.token is not None:
            find_token(passage, settings.token)
        with ablate(model.model, without):
            observation = model.observe(passage)
        scene = Scene(model, observation, tuple(without), ablates_heads=settings.importance)
        return cls(scene, settings)

    @property
    def tokens(self) -> list[str]:
        """As the model reads them, special ones included."""
        return self.scene.observation.passage.tokens

    @property
    def token(self) -> int | None:
        """The place in `tokens` of the one whose attention is shown at first."""
        chosen = self.settings.token
        return None if chosen is None else find_token(self.scene.observation.passage, chosen)

    @cached_property
    def page(self) -> InteractivePage:
        """The page, in which everything can be looked at.

        Raises:
            SettingsError: a view was asked for that can't show this model.
        """
        names = _list_views(self.settings)
        unsuited = [name for name in names if not VIEWS[name].suits(self.scene)]
        if unsuited and self.settings.views is not None:
            raise SettingsError(
                f"{self.scene.subject.name} has nothing for the view {unsuited[0]} to show; leave"
                " it out"
            )
        return build_page(
            self.scene,
            [name for name in names if name not in unsuited],
            start=Start(self.settings.layer or 1, self.settings.head, self.token),
            all_vectors=self.settings.neurons,
        )

    def write(self, path: str | Path) -> FileRecord:
        """Write the page as one HTML file, which needs no network; an older one is replaced.

        Raises:
            SettingsError: a view was asked for that can't show this model.
            StorageError: the disk refused.
        """
        return write_page(Path(path), self.page)

    def weights(self, layer: int) -> Float[Tensor, "heads length length"]:
        """The attention of a layer, from 1: a row for each token that looks, summing to 1.

        Raises:
            SettingsError: there is no such layer.
        """
        check_heads([HeadName(layer, 1)], self.scene.subject.model.config)
        return self.scene.observation.layers[layer - 1].weights

    def figure(self, layer: int, head: int, token: str | None = None) -> AttentionFigure:
        """A drawing of what one head attends to, for paper.

        Args:
            layer: from 1.
            head: from 1.
            token: whose attention alone is drawn, with its numbers; as in the settings.

        Raises:
            SettingsError: there is no such head.
            InputError: there is no such token, or there are over 128 of them.
        """
        subject, passage = self.scene.subject, self.scene.observation.passage
        check_heads([HeadName(layer, head)], subject.model.config)
        if len(passage.tokens) > MAX_TOKENS:
            raise InputError(
                f"a figure has room for {MAX_TOKENS} tokens, and the text has"
                f" {len(passage.tokens)}; shorten it, or look at the page"
            )
        weights: list[list[float]] = self.weights(layer)[head - 1].tolist()
        focus = None if token is None else find_token(passage, token)
        title = f"{subject.name}, layer {layer}, head {head}"
        return AttentionFigure(title, passage.tokens, weights, focus)

    def _repr_html_(self) -> str:
        """How notebooks show it: the page in a frame that can reach nothing of the notebook."""
        title, page = (
            html.escape(text) for text in (make_legible(self.page.title), self.page.render())
        )
        return (
            f'<iframe title="{title}" sandbox="allow-scripts" width="100%"'
            f' height="{FRAME_HEIGHT}" frameborder="0" srcdoc="{page}"></iframe>'
        )


def find_token(passage: Passage, token: str) -> int:
    """The place, from 0, of a token that is named by its text or its number from 1.

    Raises:
        InputError: there is none.
    """
    tokens = passage.tokens
    if token in tokens:
        return tokens.index(token)
    if token.isdecimal() and len(token) < 8 and 1 <= int(token) <= len(tokens):
        return int(token) - 1
    more = " …" if len(tokens) > MAX_LISTED_TOKENS else ""
    raise InputError(
        f"there is no token {token!r:.40}; the model reads"
        f" {' '.join(tokens[:MAX_LISTED_TOKENS])}{more}"
    )


def _list_views(settings: ViewSettings) -> Sequence[str]:
    """Names of the views that are wanted.

    Raises:
        SettingsError: one isn't known, or there is none.
    """
    if settings.views is None:
        return list(VIEWS)
    names = list(dict.fromkeys(filter(None, map(str.strip, settings.views.split(",")))))
    unknown = [name for name in names if name not in VIEWS]
    if unknown or not names:
        raise SettingsError(
            f"there is no view {', '.join(unknown)!r:.60}; name some of {', '.join(VIEWS)}"
        )
    return names
