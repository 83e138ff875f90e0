"""`bertkit view`: what a model does with a text, as a page, a figure or numbers."""

import json as json_module
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import SettingsError
from bertkit.base.files import check_new_file
from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.base.surrogates import replace_surrogates
from bertkit.base.wording import pluralize
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, printable
from bertkit.interpret.page.settings import ViewSettings

if TYPE_CHECKING:
    from bertkit.interpret.page.attention_view import AttentionView
    from bertkit.reports.figures.alignment_figure import AlignmentFigure
    from bertkit.reports.figures.attention_figure import AttentionFigure

DEFAULT_OUTPUT = Path("attention.html")
ENDINGS = {"--output": ".html", "--svg": ".svg", "--png": ".png"}


def view(
    model: str,
    text: Words,
    pair: Words | None = None,
    /,
    *,
    output: Path | None = None,
    overwrite: bool = False,
    open: Annotated[bool, Parameter(negative=())] = False,  # noqa: A002 - the flag's name
    svg: Path | None = None,
    png: Path | None = None,
    settings: Annotated[ViewSettings, Parameter(name="*")] = ViewSettings(),  # noqa: B008
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """See what a model does with a text: a page to look into, a figure for paper, or numbers.

    The page is one file that needs no network and no server. It shows for every head of every layer
    which words look at which, what the heads are known to do, the vectors behind it, and how much
    each head matters; every view explains what is seen.

    **Examples**

        bertkit view all-MiniLM-L6-v2/ "The cat sat because it was tired." --open

        bertkit view run/ "The door was open." "She went in." --output doors.html

        bertkit view run/ "The cat sat on the [MASK]." --read-mask --views words

        bertkit view sentiment/ "a gripping film" --without 5.3,5.4

        bertkit view run/ "the dog ran" --svg dog.svg --png dog.png --layer 2 --head 3 --token ran

        bertkit view run/ "the dog ran" --json --token ran

        bertkit view de-en/ "Ein Mann fährt Fahrrad." --svg alignment.svg

        bertkit view de-en/ "Ein Mann fährt Fahrrad." "A man rides a bike." --attention decoder

    Args:
        model: A run of `bertkit pretrain`, a model folder of any task, an encoder-decoder, or the
            id of a model of the Hub.
        text: What it reads.
        pair: A second text. For an encoder-decoder, what it is taken to write; without it, it
            writes itself.
        output: File for the page; by default attention.html, but none beside a figure or --json.
        overwrite: Replace files that exist.
        open: Show the page in the browser.
        svg: File for a figure of --layer and --head; with --token of that token alone. Of an
            encoder-decoder the alignment of both texts, in the mean of what isn't chosen; with
            --token, too, what one head looks at once that token is written.
        png: The same figure in pixels, 300 an inch; needs `bertkit[plots]`.
        settings: Settings.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object: the tokens, and what each head does. The weights are those of
            --token, or of --layer and --head.
    """
    if json:
        check_standard_output()
    if output is None and (open or not (svg or png or json)):
        output = DEFAULT_OUTPUT
    named = {"--output": output, "--svg": svg, "--png": png}
    with hold(named, overwrite=overwrite) as places:
        output, *figures = places
        from bertkit.interpret.page.attention_view import AttentionView

        text, pair = replace_surrogates((text, pair))
        seen = AttentionView.of(model, text, pair, settings, device=device, revision=revision)
        if svg or png:
            write_figures(seen, list(filter(None, figures)))
        if output is not None:
            write_page(seen, output)
    if open and output is not None:
        show(output)
    if json:
        from bertkit.interpret.page.numbers import gather_numbers

        print(json_module.dumps(gather_numbers(seen), ensure_ascii=False))


@contextmanager
def hold(named: dict[str, Path | None], *, overwrite: bool) -> Iterator[list[Path | None]]:
    """Hold the files that were named by flags, before a model is loaded.

    Raises:
        SettingsError: a name doesn't say its form, or exists and isn't to be replaced.
        BertkitError: as in `open_output`.
    """

    def check(place: Path) -> None:
        if place.suffix.lower() != ENDINGS[flag]:
            raise SettingsError(f"{flag} {place} must end with {ENDINGS[flag]}")
        check_new_file(place, overwrite=overwrite)

    with ExitStack() as stack:
        places: list[Path | None] = []
        for flag, path in named.items():
            place = None
            if path is not None:
                opened = open_output(path, "drawing", check=check, flag=flag)
                place = stack.enter_context(opened)
            places.append(place)
        yield places


def write_figures(seen: "AttentionView", paths: list[Path]) -> None:
    """Write the figure of what is chosen under each name.

    Raises:
        SettingsError: a figure of one head is needed, and none is named.
    """
    layer, head, token = seen.settings.layer, seen.settings.head, seen.settings.token
    if seen.inputs.is_cross_attention and token is None:
        figure: AlignmentFigure | AttentionFigure = seen.alignment(layer, head)
    elif layer is None or head is None:
        raise SettingsError("a figure shows one head; name it with --layer and --head")
    else:
        figure = seen.figure(layer, head, token)
    for path in paths:
        record = figure.write(path)
        shown = figure.title.removeprefix(f"{seen.inputs.inspected.name}, ")
        announce(f"{path}: {printable(shown)}, {record.size_bytes / 1e3:,.0f} kB")


def write_page(seen: "AttentionView", path: Path) -> None:
    """Write the page, and say what it is."""
    config = seen.inputs.observation.config
    record = seen.write(path)
    announce(
        f"{path}: {pluralize(len(seen.tokens), 'token')},"
        f" {pluralize(config.num_hidden_layers, 'layer')} of"
        f" {pluralize(config.num_attention_heads, 'head')}, {record.size_bytes / 1e6:,.1f} MB;"
        " open it in a browser"
    )


def show(path: Path) -> None:
    """Start the browser."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        announce(f"no browser was found; open {path} in one")
