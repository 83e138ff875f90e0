"""`bertkit view`: visualize attention as a page, a figure or numbers."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.files import check_new_file
from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.base.settings import replace_surrogates
from bertkit.cli.output import check_standard_output, format_json
from bertkit.cli.texts import Words, open_in_browser, printable, take_model
from bertkit.inference.settings import LoadingSettings
from bertkit.interpret.settings import ViewSettings

if TYPE_CHECKING:
    from bertkit.interpret.attention_view import AttentionView
    from bertkit.reports.figures.alignment_figure import AlignmentFigure
    from bertkit.reports.figures.attention_figure import AttentionFigure

DEFAULT_OUTPUT = Path("attention.html")
ENDINGS = {"--output": ".html", "--svg": ".svg", "--png": ".png"}


def view(
    *texts: Words,
    model: str | None = None,
    output: Path | None = None,
    overwrite: bool = False,
    open: Annotated[bool, Parameter(negative=())] = False,  # noqa: A002 - the flag's name
    svg: Path | None = None,
    png: Path | None = None,
    settings: ViewSettings = ViewSettings(),
    loading: LoadingSettings = LoadingSettings(),
    json: bool = False,
) -> None:
    """Visualize a model's attention for a text: an interactive page, a figure, or numbers.

    The page is one file that needs no network and no server. For every head of every layer it shows
    which words attend to which, known head patterns, the query and key vectors, and the importance
    of the head; every view has an explanation.

    **Examples**

        bertkit view "The cat sat because it was tired." --open

        bertkit view all-MiniLM-L6-v2/ "The cat sat because it was tired." --open

        bertkit view run/ "The door was open." "She went in." --output doors.html

        bertkit view run/ "The cat sat on the [MASK]." --read-mask --views words

        bertkit view sentiment/ "a gripping film" --without 5.3,5.4

        bertkit view run/ "the dog ran" --svg dog.svg --png dog.png --layer 2 --head 3 --token ran

        bertkit view run/ "the dog ran" --json --token ran

        bertkit view de-en/ "Ein Mann fährt Fahrrad." --svg alignment.svg

        bertkit view de-en/ "Ein Mann fährt Fahrrad." "A man rides a bike." --attention decoder

    Args:
        texts: A text, or two; the first argument may be the model. For an encoder-decoder the
            second is the target text; by default the text that the model generates.
        model: A run of `bertkit pretrain`, a model folder of any task, an encoder-decoder, or the
            id of a model of the Hub; by default the first argument, or else the model that comes
            with bertkit: all-MiniLM-L6-v2, or with --read-mask or --views words its weights with a
            head for words.
        output: File for the page; by default attention.html, unless a figure or --json is wanted.
        overwrite: Replace files that exist.
        open: Show the page in the browser.
        svg: File for a figure of --layer and --head; with --token, of that token alone. For an
            encoder-decoder, the alignment of both texts, averaged over the layers or heads that
            aren't chosen; with --token, the attention of one head after that token.
        png: The same figure in pixels, at 300 dpi; needs `bertkit[plots]`.
        json: Print one JSON object: the tokens, a summary of each head, and the attention weights
            of --token, or of --layer and --head.
    """
    if json:
        check_standard_output()
    model, texts = take_model(texts, model, settings.bundled_part)
    if not 1 <= len(texts) <= 2:
        raise InputError(f"got {pluralize(len(texts), 'text')}; give one, or two")
    if output is None and (open or not (svg or png or json)):
        output = DEFAULT_OUTPUT
    named = {"--output": output, "--svg": svg, "--png": png}
    with hold(named, overwrite=overwrite) as places:
        output, *figures = places
        from bertkit.interpret.attention_view import AttentionView, gather_numbers

        text, pair = replace_surrogates((*texts, None)[:2])
        seen = AttentionView.of(model, text, pair, settings, **dict(loading))
        if svg or png:
            write_figures(seen, list(filter(None, figures)))
        if output is not None:
            write_page(seen, output)
    if output is not None and not json:
        for line in seen.summarize():
            print(printable(line))
    if open and output is not None:
        open_in_browser(output)
    if json:
        sys.stdout.write(format_json(gather_numbers(seen)))


@contextmanager
def hold(named: dict[str, Path | None], *, overwrite: bool) -> Iterator[list[Path | None]]:
    """Lock the output files before a model is loaded, and check their names."""

    def open_place(flag: str, path: Path) -> AbstractContextManager[Path]:
        def check(place: Path) -> None:
            if place.suffix.lower() != ENDINGS[flag]:
                raise SettingsError(f"{flag} {place} must end with {ENDINGS[flag]}")
            check_new_file(place, overwrite=overwrite)

        return open_output(path, "drawing", check=check, flag=flag)

    with ExitStack() as stack:
        yield [
            None if path is None else stack.enter_context(open_place(flag, path))
            for flag, path in named.items()
        ]


def write_figures(seen: "AttentionView", paths: list[Path]) -> None:
    """Write the chosen figure to each path."""
    chosen = seen.settings
    if seen.inputs.is_cross_attention and chosen.token is None:
        figure: AlignmentFigure | AttentionFigure = seen.alignment(chosen.layer, chosen.head)
    elif chosen.layer is not None and chosen.head is not None:
        figure = seen.figure(chosen.layer, chosen.head, chosen.token)
    else:
        figure = seen.opening_figure()
    for path in paths:
        record = figure.write(path)
        shown = figure.title.removeprefix(f"{seen.inputs.inspected.name}, ")
        announce(f"{path}: {printable(shown)}, {record.size_bytes / 1e3:,.0f} kB")


def write_page(seen: "AttentionView", path: Path) -> None:
    """Write the page and announce it."""
    config = seen.inputs.observation.config
    record = seen.write(path)
    announce(
        f"{path}: {pluralize(len(seen.tokens), 'token')},"
        f" {pluralize(config.num_hidden_layers, 'layer')} of"
        f" {pluralize(config.num_attention_heads, 'head')}, {record.size_bytes / 1e6:,.1f} MB;"
        " open it in a browser"
    )
