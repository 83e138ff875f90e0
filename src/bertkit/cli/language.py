"""Commands of models that predict or score words: fill-mask, score."""

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.base.errors import pluralize
from bertkit.base.output import check_standard_output
from bertkit.cli.output import print_result
from bertkit.cli.texts import (
    NamedModel,
    Words,
    find_size,
    gather_texts,
    printable,
    stream_results,
    take_model,
)
from bertkit.data.problems import announce_unknown
from bertkit.inference.settings import EngineSettings, FillOptions
from bertkit.reports.text import format_percent, shorten

if TYPE_CHECKING:
    from bertkit.inference.fill_mask import FilledText
    from bertkit.inference.text_scorer import TextScore


def fill_mask(
    *texts: Words,
    model: NamedModel = None,
    file: Path | None = None,
    options: FillOptions = FillOptions(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Predict the most probable words for each [MASK] of a text.

    **Examples**

        bertkit fill-mask "The doctor ran to see [MASK] patient." --top-k 5

        bertkit fill-mask run/ "She opened the [MASK]."

        bertkit fill-mask run/ "He took [MASK] hat." --targets his --targets her

        bertkit fill-mask run/ --file texts.txt --json

        bertkit fill-mask google-bert/bert-base-uncased "Paris is the [MASK] of France."

    Args:
        texts: Texts with at least one [MASK] each; the first argument may be the model; - reads
            standard input, one text per line.
        file: File with one text per line, of any length.
        json: Print one JSON object per text.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", file=file)
    named = gather_texts(texts, file)
    from bertkit.inference.fill_mask import FillMask
    from bertkit.inference.stream import TextCounts

    fill = FillMask.load(model, loading).with_options(options)
    size, is_watched = find_size(texts, file), sys.stdout.isatty()
    counts = TextCounts()
    found = stream_results(fill, named, "Filling", size, is_hidden=is_watched, counts=counts)
    for result in found:
        print_result(result, describe_blanks, json=json)
    announce_unknown(counts.unknown_tokens, counts.text_tokens)


def describe_blanks(result: "FilledText") -> str:
    """Describe the words of each [MASK]."""
    lines = [result.text]
    for number, candidates in enumerate(result.blanks, start=1):
        if len(result.blanks) > 1:
            lines.append(f"  blank {number}")
        lines += [
            f"  {format_percent(one.probability):>7} {printable(one.token)}" for one in candidates
        ]
    return "\n".join(lines)


SHOWN_CHARS = 60  # of a text


def score(
    *texts: Words,
    model: NamedModel = None,
    file: Path | None = None,
    loading: EngineSettings = EngineSettings(),
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
        file: File with one text per line.
        json: Print one JSON object per text, and one for all.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", file=file)
    named = gather_texts(texts, file)
    from bertkit.inference.text_scorer import TextScorer

    scorer = TextScorer.load(model, loading)
    logs: list[float] = []
    num_tokens = num_unknown = 0
    for result in stream_results(scorer, named, "Scoring", find_size(texts, file)):
        facts = {**asdict(result), "perplexity": result.perplexity}
        print_result(result, describe_score, json=json, facts=facts)
        logs.append(result.log_probability)
        num_tokens += result.num_tokens
        num_unknown += result.num_unknown
    if json or len(logs) > 1:
        from bertkit.tasks.metrics.texts import find_perplexity

        whole = {
            "texts": len(logs),
            "num_tokens": num_tokens,
            "num_unknown": num_unknown,
            "log_probability": math.fsum(logs),
            "perplexity": find_perplexity(-math.fsum(logs) / num_tokens),
        }
        print_result(whole, describe_all_scores, json=json)
    announce_unknown(num_unknown, num_tokens)


def describe_all_scores(whole: Mapping[str, Any]) -> str:
    """Describe the scores of all texts together as the last line of a table."""
    counts = f"{pluralize(whole['texts'], 'text')}, {pluralize(whole['num_tokens'], 'token')}"
    return f"{format_score(whole['log_probability'], whole['perplexity'])} all {counts}"


def describe_score(result: "TextScore") -> str:
    """Describe a score as a line of a table."""
    shown = shorten(printable(result.text), SHOWN_CHARS)
    return f"{format_score(result.log_probability, result.perplexity)} {shown}"


def format_score(log_probability: float, perplexity: float) -> str:
    """Format a log probability and a perplexity as the first columns of a line."""
    return f"{log_probability:10,.2f}   perplexity {perplexity:8,.1f}  "
