"""`bertkit features`: extract hidden states of the tokens of a file of texts."""

import json as json_module
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.base.wording import pluralize
from bertkit.batch_jobs.features.settings import FeaturesSettings
from bertkit.cli.default_model import take_model_and_file
from bertkit.cli.embed import PROBLEMS
from bertkit.cli.output import check_standard_output
from bertkit.cli.results import list_problems
from bertkit.cli.texts import Words

if TYPE_CHECKING:
    from bertkit.batch_jobs.features.run import FeaturesResult

# `--layers -1 -2` is one flag with two values; there is no flag for an empty list.
Flags = Parameter(name="*", consume_multiple=True, negative_iterable=())


def features(
    *inputs: Words,
    model: str | None = None,
    output: Path | None = None,
    settings: Annotated[FeaturesSettings, Flags] = FeaturesSettings(),  # noqa: B008
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Extract the hidden states of each token (T_i) and one vector of each text (C).

    This is the feature-based use of BERT: another model is trained on the features, and BERT isn't
    changed. Reads what `bertkit embed` reads; row n of the output belongs to row n of the input.
    Texts that are too long are truncated and counted. C comes from the model's pooler, or, if it
    has none, is the last layer's [CLS]; the output says which.

    .jsonl has one line per text; .parquet has the same in a quarter of the space, and is written
    several times faster. A .json beside it lists everything that the features depend on.

    **Examples**

        bertkit features texts.txt --output features.parquet

        bertkit features run/ texts.txt --layers -1 -2 -3 -4 --combine concat

        bertkit features bert-base/ corpus.jsonl.gz --output features.parquet

        bertkit features run/ pairs.txt --pairs --combine none --layout google --output f.jsonl

    Args:
        inputs: A file of texts, or - for standard input; an argument before it is the model.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        output: File for the features: .jsonl or .parquet. Without it, they are printed as JSONL,
            and the summary goes to standard error.
        settings: The settings of the command.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print the summary as one JSON object.
    """
    if output is None:
        check_standard_output()
    model, texts = take_model_and_file(inputs, model)
    from bertkit.batch_jobs.features.run import (
        FeatureStream,
        check_output,
        print_features,
        write_features,
    )

    if output is None:
        stream = FeatureStream(model, texts, settings, device=device, revision=revision)
        announce(_describe(print_features(stream, print), json=json))
        return
    check = partial(check_output, texts, settings=settings)
    with open_output(output, "writing features into", inputs=[texts], check=check) as place:
        stream = FeatureStream(model, texts, settings, device=device, revision=revision)
        print(_describe(write_features(stream, place), json=json))


def _describe(result: "FeaturesResult", *, json: bool) -> str:
    """Format the summary as JSON or text."""
    output, identity = result.output, result.identity
    if json:
        shown = {**asdict(result), "output": output and str(output)}
        return json_module.dumps(shown | {"tokens_per_second": result.tokens_per_second})
    counts = result.counts
    layers = "layer " + ", ".join(map(str, identity["layers"]))
    line = (
        f"{pluralize(counts.texts, 'text')} → {output or 'standard output'},"
        f" {pluralize(counts.tokens, 'token')} {list(result.shape)} of {layers}"
        f" ({identity['combine']}), C from {identity['sequence_from']},"
        f" {result.tokens_per_second:,.0f} tokens per second"
    )
    problems = ", ".join(list_problems(counts, PROBLEMS, max_length=identity["max_length"]))
    return "; ".join(filter(None, (line, problems)))
