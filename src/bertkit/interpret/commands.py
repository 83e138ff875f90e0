"""`bertkit view` and `bertkit attention`: attention as a page, a figure or tables."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.extras import require_torch
from bertkit.base.files import check_new_file
from bertkit.base.output import check_standard_output, open_output
from bertkit.base.progress import announce
from bertkit.base.settings import replace_surrogates
from bertkit.cli.output import format_json
from bertkit.cli.texts import Words, choose_model, open_in_browser, printable
from bertkit.inference.settings import LoadingSettings
from bertkit.interpret.settings import AttentionSettings, Matrices, ViewSettings
from bertkit.reports.text import format_percent

if TYPE_CHECKING:
    from bertkit.interpret.attention_view import AttentionView
    from bertkit.interpret.figures.alignment_figure import AlignmentFigure
    from bertkit.interpret.figures.attention_figure import AttentionFigure
    from bertkit.interpret.head_steps import HeadSteps

DEFAULT_OUTPUT = Path("attention.html")
ENDINGS = (".html", ".svg", ".png")


def view(
    *texts: Words,
    model: str | None = None,
    output: Path | None = None,
    overwrite: bool = False,
    open: Annotated[bool, Parameter(negative=())] = False,  # noqa: A002 - the flag's name
    settings: ViewSettings = ViewSettings(),
    loading: LoadingSettings = LoadingSettings(),
    json: bool = False,
) -> None:
    """Visualize a model's attention for a text: an interactive page, a figure, or numbers.

    The page is one file that needs no network and no server. For every head of every layer it shows
    which words attend to which, known head patterns, the query and key vectors, and the importance
    of the head; every view has an explanation. A figure shows --layer and --head; with --token,
    that token alone. For an encoder-decoder it is the alignment of both texts, averaged over the
    layers or heads that aren't chosen; with --token, the attention of one head after that token.

    **Examples**

        bertkit view "The cat sat because it was tired." --open

        bertkit view "The door was open." "She went in." --model run/ --output doors.html

        bertkit view "The cat sat on the [MASK]." --model run/ --views words

        bertkit view "a gripping film" --model sentiment/ --without 5.3,5.4

        bertkit view "the dog ran" --output dog.svg --layer 2 --head 3 --token ran

        bertkit view "the dog ran" --json --token ran

        bertkit view "Ein Mann fährt Fahrrad." --model de-en/ --output alignment.svg

        bertkit view "Ein Mann fährt Fahrrad." "A man rides." --model de-en/ --attention decoder

    Args:
        texts: A text, or two. For an encoder-decoder the second is the target text; by default the
            text that the model generates. [MASK] is the mask token of a BERT.
        model: A run of `bertkit pretrain`, a model folder of any task, an encoder-decoder, or the
            id of a model of the Hub; by default the model that comes with bertkit:
            all-MiniLM-L6-v2, or with [MASK] or --views words its weights with a head for words.
        output: File for the page (.html) or a figure (.svg; .png at 300 dpi, needs the extra
            plots); by default attention.html, unless --json is given.
        overwrite: Replace an existing output.
        open: Show the output in the browser.
        json: Print one JSON object: the tokens, a summary of each head, and the attention weights
            of --token, or of --layer and --head.
    """
    require_torch("`bertkit view`")
    if json:
        check_standard_output()
    model = choose_model(model, settings.find_bundled_part(*texts), texts)
    if not 1 <= len(texts) <= 2:
        raise InputError(f"got {pluralize(len(texts), 'text')}; give one, or two")
    if output is None and (open or not json):
        output = DEFAULT_OUTPUT
    with hold(output, overwrite=overwrite) as output:
        from bertkit.interpret.attention_view import AttentionView, gather_numbers

        text, pair = replace_surrogates((*texts, None)[:2])
        seen = AttentionView.of(model, text, pair, settings, **dict(loading))
        if output is not None and output.suffix.lower() == ".html":
            write_page(seen, output)
        elif output is not None:
            write_figure(seen, output)
    if output is not None and output.suffix.lower() == ".html" and not json:
        for line in seen.summarize():
            print(printable(line))
    if open and output is not None:
        open_in_browser(output)
    if json:
        sys.stdout.write(format_json(gather_numbers(seen)))


def hold(output: Path | None, *, overwrite: bool) -> AbstractContextManager[Path | None]:
    """Lock the output before a model is loaded, and check its name."""

    def check(place: Path) -> None:
        if place.suffix.lower() not in ENDINGS:
            raise SettingsError(f"--output {place} must end with {', '.join(ENDINGS)}")
        check_new_file(place, overwrite=overwrite)

    return nullcontext() if output is None else open_output(output, "drawing", check=check)


def write_figure(seen: "AttentionView", path: Path) -> None:
    """Write the chosen figure and announce it."""
    chosen = seen.settings
    if seen.inputs.has_two_texts and chosen.token is None:
        figure: AlignmentFigure | AttentionFigure = seen.alignment(chosen.layer, chosen.head)
    elif chosen.layer is not None and chosen.head is not None:
        figure = seen.figure(chosen.layer, chosen.head, chosen.token)
    else:
        figure = seen.opening_figure()
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


GAP = "    "  # between tables
MAX_COLUMNS = 24  # tokens of a table of a text
SHOWN_NUMBERS = 6  # of a result
MASKED = "·"


def attention(
    *texts: Words,
    model: str | None = None,
    settings: AttentionSettings = AttentionSettings(),
    loading: LoadingSettings = LoadingSettings(),
    json: bool = False,
) -> None:
    """Compute the attention of one head step by step, with numbers to check by hand.

    X is multiplied by three matrices, which gives query, key and value of each token; queries and
    keys give scores, the softmax of the scores gives weights, and the weighted sum of the values is
    the result. Without arguments, an example of three tokens is computed. For a text, query, key
    and value are those of a head of a model.

    **Examples**

        bertkit attention

        bertkit attention --causal

        bertkit attention --matrices matrices.toml

        bertkit attention "The cat sat because it was tired." --layer 4 --head 2 --token it

        bertkit attention "The cat sat because it was tired." --token it

        bertkit attention "The door was open." --model run/ --layer 2 --head 1 --causal

    Args:
        texts: A text, or two; [MASK] is the mask token.
        model: A run of `bertkit pretrain`, a model folder of any task, or the id of a model of the
            Hub; by default the model that comes with bertkit.
        json: Print one JSON object with all numbers, or with those of --token.
    """
    require_torch("`bertkit attention`")
    check_standard_output()
    title, steps = _compute(texts, model, settings, loading)
    token = None if settings.token is None else steps.find(settings.token)
    if json:
        sys.stdout.write(format_json(steps.gather_numbers(token)))
        return
    if token is not None:
        lines = _list_token(steps, token, settings.top_k)
    else:
        lines = _list_weights(steps) if title else _list_steps(steps)
    print(*filter(None, [title]), *lines, sep="\n")


def _compute(
    texts: tuple[str, ...],
    model: str | None,
    settings: AttentionSettings,
    loading: LoadingSettings,
) -> tuple[str, "HeadSteps"]:
    """Return a title, empty without a text, and the steps of one head."""
    matrices = Matrices() if settings.matrices is None else Matrices.read(settings.matrices)
    if texts or model is not None:
        if given := list(matrices.model_fields_set - {"scale"}):
            raise SettingsError(
                f"{settings.matrices} has {min(given)}, and a text has its own; leave one out"
            )
        return _read(texts, model, settings, loading, is_scaled=matrices.scale)
    if needless := sorted(settings.model_fields_set & {"layer", "head"}):
        raise SettingsError(f"{needless[0]} is of a model on a text; give a text as well")
    from bertkit.interpret.head_steps import attend_given
    from bertkit.nn.masks import BIDIRECTIONAL, choose_mask

    return "", attend_given(matrices, choose_mask(settings, BIDIRECTIONAL))


def _read(
    texts: tuple[str, ...],
    model: str | None,
    settings: AttentionSettings,
    loading: LoadingSettings,
    *,
    is_scaled: bool,
) -> tuple[str, "HeadSteps"]:
    """Return a title, and the steps of one head of a model on a text."""
    model = choose_model(model, "vectors", texts)
    if not 1 <= len(texts) <= 2:
        raise InputError(f"got {pluralize(len(texts), 'text')}; give one, or two")
    from bertkit.interpret.head_steps import attend_text
    from bertkit.interpret.inspected_model import InspectedModel

    inspected = InspectedModel.load(model, **dict(loading))
    text, pair = replace_surrogates((*texts, None)[:2])
    steps = attend_text(inspected, text, pair, settings, is_scaled=is_scaled)
    assert steps.name is not None
    name = f"{printable(inspected.name)}, layer {steps.name.layer}, head {steps.name.head}"
    mask = f", {steps.mask.name}" if steps.mask.name else ""
    sizes = f"{pluralize(len(steps.tokens), 'token')}, {steps.query.shape[1]} features each"
    return f"{name}{mask}: {sizes}", steps


def _list_steps(steps: "HeadSteps") -> Iterator[str]:
    """Yield the tables of all steps, with an empty line between them."""
    given = steps.given
    if "x" in given:
        yield from _table("X", given["x"].tolist(), steps.tokens)
        yield ""
    # query, key and value, beside the weights that X is multiplied by
    for name, part in {"query": steps.query, "key": steps.key, "value": steps.value}.items():
        letter, rows = name[0].upper(), steps.tokens if name == "query" else steps.attended
        weights = given.get(f"{name}_weights")
        if weights is not None:
            matrix = _table(f"W_{name[0]}", weights.tolist())
            yield from _beside(matrix, _table(f"{letter} = X · W_{name[0]}", part.tolist(), rows))
        else:
            yield from [f"{letter} = X"] if "x" in given else _table(letter, part.tolist(), rows)
        yield ""
    names = steps.tokens, steps.attended
    tables = [_table("Q · Kᵀ", steps.products.tolist(), *names)]
    divided = f"/ √{steps.query.shape[1]}" if steps.is_scaled else ""
    # what is done to the products before the softmax
    bias = "" if steps.bias is None else "+ bias of distance"
    masked = "masked" if steps.mask.name else ""
    if title := ", ".join(filter(None, [divided, bias, masked])):
        tables.append(_table(title, steps.scores.tolist(), *names))
    yield from _beside(*tables, _table("softmax, in %", _percent(steps), *names, digits=1))
    yield ""
    yield from _table("Y = softmax · V", steps.result.tolist(), steps.tokens)


def _percent(steps: "HeadSteps") -> list[list[float]]:
    """Return the weights in percent; NaN where the mask hides a token."""
    shares: list[list[float]]
    shares = (100 * steps.weights).masked_fill(~steps.allowed, math.nan).tolist()
    return shares


def _table(
    title: str,
    rows: Sequence[Sequence[float]],
    names: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    digits: int | None = None,
) -> list[str]:
    """Return a title and aligned rows of numbers, whole ones without a point."""
    if digits is None:
        numbers = [number for row in rows for number in row if math.isfinite(number)]
        digits = 0 if all(number == round(number) for number in numbers) else 3
    cells = [[_write(number, digits) for number in row] for row in rows]
    head = [list(map(printable, columns))] if columns else []
    width = max(len(cell) for row in (*head, *cells) for cell in row)
    labels = [*([""] if head else []), *map(printable, names or [""] * len(rows))]
    label_width = max(map(len, labels)) + 2 if names else 0
    return [title] + [
        f"  {label:<{label_width}}{'  '.join(f'{cell:>{width}}' for cell in row)}".rstrip()
        for label, row in zip(labels, (*head, *cells), strict=True)
    ]


def _write(number: float, digits: int) -> str:
    if math.isnan(number):
        return MASKED
    return "-∞" if math.isinf(number) else f"{number + 0.0:.{digits}f}"


def _beside(*tables: list[str]) -> Iterator[str]:
    """Yield tables side by side."""
    widths = [max(map(len, table)) for table in tables]
    for lines in zip_longest(*tables, fillvalue=""):
        padded = (f"{line:<{width}}" for line, width in zip(lines, widths, strict=True))
        yield GAP.join(padded).rstrip()


def _list_weights(steps: "HeadSteps") -> Iterator[str]:
    """Yield the weights of all tokens of a text, in percent."""
    num_tokens = len(steps.tokens)
    if num_tokens > MAX_COLUMNS:
        raise InputError(
            f"a table has room for {MAX_COLUMNS} tokens, and the text has {num_tokens}; choose one"
            " with --token, or write all numbers with --json"
        )
    names = [f"{number:>2} {token}" for number, token in enumerate(steps.tokens, 1)]
    columns = [str(number) for number in range(1, num_tokens + 1)]
    title = "softmax, in %: a row for each token, a column for each token that it attends to"
    yield from _table(title, _percent(steps), names, columns, digits=1)


def _list_token(steps: "HeadSteps", token: int, top_k: int) -> Iterator[str]:
    """Yield what one token attends to, the largest weight first."""
    seen = steps.allowed[token].nonzero()[:, 0]
    shares = steps.weights[token]
    shown = seen[shares[seen].argsort(descending=True, stable=True)[:top_k]].tolist()
    names = {index: f"{index + 1:>3}  {printable(steps.attended[index])}" for index in shown}
    width = max(map(len, (*names.values(), steps.tokens[token])))
    divided = [f"/ √{steps.query.shape[1]}"] if steps.is_scaled else []
    heads = ("q · k", *divided, "softmax")
    yield "".join((f"{steps.tokens[token]:<{width}}", *(f"  {head:>9}" for head in heads)))
    for index in shown:
        numbers = [float(steps.products[token, index]), float(steps.scores[token, index])]
        cells = [f"  {number:>9.3f}" for number in numbers[: 1 + len(divided)]]
        share = format_percent(float(shares[index]))
        yield "".join((f"{names[index]:<{width}}", *cells, f"  {share:>9}"))
    total = float(shares[shown].sum())
    yield f"{len(shown)} of {pluralize(len(seen), 'weight')}, together {format_percent(total)}"
    result = steps.result[token]
    first = " ".join(f"{number:.3f}" for number in result[:SHOWN_NUMBERS].tolist())
    more = " …" if len(result) > SHOWN_NUMBERS else ""
    length = f"{pluralize(len(result), 'number')} of length {float(result.norm()):.3f}"
    yield f"result: {length}: {first}{more}"
