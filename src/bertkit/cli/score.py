"""`bertkit score`: how likely a language model finds texts."""

import json as json_module
import math
import sys
from dataclasses import asdict
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.progress import show_progress
from bertkit.base.wording import pluralize
from bertkit.cli.default_model import take_model
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, find_size, gather_texts, printable, shorten
from bertkit.inference.engines.names import EngineName, PrecisionName

if TYPE_CHECKING:
    from bertkit.scoring.text_scorer import TextScore

SHOWN_CHARS = 60  # of a text


def score(
    *texts: Words,
    model: str | None = None,
    file: Path | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    json: bool = False,
) -> None:
    """Score how likely a language model finds texts, without labels.

    Prints each text's log probability and its perplexity per token: 1 is certainty, and a model
    that guesses has the size of its vocabulary. A bidirectional model predicts each token from all
    others (the pseudo log-likelihood), a left-to-right model from those before it. Scores compare
    texts under one model; long texts are split into windows.

    **Examples**

        bertkit score "The cats are asleep." "The cats is asleep."

        bertkit score run/ --file sentences.txt --json

        bertkit score gpt/ "The captain looked at the sea." "Sea the at looked captain the."

    Args:
        texts: Texts; the first argument may be the model; - reads standard input, one text per
            line.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        file: File with one text per line.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        engine: The inference engine; auto uses the fastest that is installed.
        precision: Precision of matrix products: auto takes bf16 where it was measured to be
            faster, else fp32; int8 is faster on processors with VNNI, and less exact.
        json: Print one JSON object per text, and one for all.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", file=file)
    named = gather_texts(texts, file)
    from bertkit.inference.named_texts import NamedText
    from bertkit.metrics.perplexity import find_perplexity
    from bertkit.scoring.text_scorer import TextScorer

    scorer = TextScorer.load(model, device, revision=revision, engine=engine, precision=precision)
    logs, num_tokens, num_unknown = [], 0, 0
    with show_progress("Scoring", find_size(texts, file), is_bytes=True) as progress:
        for result in scorer.stream(starmap(NamedText, named)):
            sys.stdout.write(describe(result, json=json))
            logs.append(result.log_probability)
            num_tokens += result.num_tokens
            num_unknown += result.num_unknown
            progress.advance(len(result.text.encode(errors="replace")) + 1)
    total = math.fsum(logs)
    whole = find_perplexity(-total / num_tokens)
    if json:
        counts = {"texts": len(logs), "num_tokens": num_tokens, "num_unknown": num_unknown}
        facts = {**counts, "log_probability": total, "perplexity": whole}
        print(json_module.dumps(facts, allow_nan=False))
    elif len(logs) > 1 or num_unknown:
        unknown = f", {num_unknown:,} of them unknown" if num_unknown else ""
        print(
            f"{format_score(total, whole)} all {pluralize(len(logs), 'text')},"
            f" {pluralize(num_tokens, 'token')}{unknown}"
        )


def describe(result: "TextScore", *, json: bool) -> str:
    """Format a result as a line of text or JSON."""
    if json:
        facts = {**asdict(result), "perplexity": result.perplexity}
        return json_module.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n"
    shown = shorten(printable(result.text), SHOWN_CHARS)
    return f"{format_score(result.log_probability, result.perplexity)} {shown}\n"


def format_score(log_probability: float, perplexity: float) -> str:
    """Format a log probability and a perplexity as the first columns of a line."""
    return f"{log_probability:10,.2f}   perplexity {perplexity:8,.1f}  "
