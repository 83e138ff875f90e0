"""`bertkit perplexity`: measure how well a left-to-right model predicts texts."""

import json as json_module
import math
import sys
from dataclasses import asdict
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.progress import show_progress
from bertkit.base.wording import pluralize
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, find_size, gather_texts, printable, shorten

if TYPE_CHECKING:
    from bertkit.generation.perplexity import TextPerplexity

SHOWN_CHARS = 60  # of a text


def perplexity(
    model: str,
    /,
    *texts: Words,
    file: Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Measure how well a left-to-right model predicts texts: their perplexity.

    Perplexity is the exponential of the mean negative log-likelihood per token; 1 is certainty.
    It is comparable only between models with the same vocabulary. Long texts are split into
    windows.

    **Examples**

        bertkit perplexity gpt/ "The captain looked at the sea." "Sea the at looked captain the."

        bertkit perplexity gpt/ --file held-out.txt

    Args:
        model: A run of `bertkit pretrain --objective causal`, its model folder, or the id of such a
            model of the Hub.
        texts: Texts to measure; - reads standard input, one text per line.
        file: File with one text per line.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object per text, and one for all.
    """
    check_standard_output()
    from bertkit.generation.perplexity import Perplexity
    from bertkit.inference.named_texts import NamedText
    from bertkit.metrics.perplexity import find_perplexity

    named = gather_texts(texts, file)

    measure = Perplexity.load(model, device, revision=revision)
    logs, num_tokens, num_unknown, num_texts = [], 0, 0, 0
    with show_progress("Reading", find_size(texts, file), is_bytes=True) as progress:
        for result in measure.stream(starmap(NamedText, named)):
            sys.stdout.write(describe(result, json=json))
            logs.append(result.log_probability)
            num_tokens += result.num_tokens
            num_unknown += result.num_unknown
            num_texts += 1
            progress.advance(len(result.text.encode(errors="replace")) + 1)
    total = math.fsum(logs)
    whole = find_perplexity(-total / num_tokens)
    if json:
        counts = {"texts": num_texts, "num_tokens": num_tokens, "num_unknown": num_unknown}
        facts = {**counts, "log_probability": total, "perplexity": whole}
        print(json_module.dumps(facts, allow_nan=False))
    elif num_texts > 1 or num_unknown:
        unknown = f", {num_unknown:,} of them unknown" if num_unknown else ""
        print(
            f"{whole:10,.1f} all {pluralize(num_texts, 'text')},"
            f" {pluralize(num_tokens, 'token')}{unknown}"
        )


def describe(result: "TextPerplexity", *, json: bool) -> str:
    """Format a result as a line of text or JSON."""
    if json:
        facts = {**asdict(result), "perplexity": result.perplexity}
        return json_module.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n"
    return f"{result.perplexity:10,.1f} {shorten(printable(result.text), SHOWN_CHARS)}\n"
