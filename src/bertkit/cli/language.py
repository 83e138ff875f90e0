"""Commands of models that predict words: fill-mask, score."""

import math
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.extras import require_torch
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce
from bertkit.cli.output import print_result
from bertkit.cli.texts import (
    NamedModel,
    TextFile,
    Words,
    choose_model,
    describe_metrics,
    gather_texts,
    legible,
    open_input,
    printable,
    stream_results,
)
from bertkit.data.problems import announce_unknown
from bertkit.data.tables.settings import TableSettings
from bertkit.inference.settings import EngineSettings, FillOptions
from bertkit.reports.text import format_metric, format_number, format_percent, shorten

if TYPE_CHECKING:
    from bertkit.inference.minimal_pairs import PairAccuracy, PairsResult


def fill_mask(
    *texts: Words,
    model: NamedModel = None,
    file: TextFile = None,
    options: FillOptions = FillOptions(),
    reading: TableSettings = TableSettings(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Predict the most probable words for each [MASK] of a text.

    **Examples**

        bertkit fill-mask "The doctor ran to see [MASK] patient." --top-k 5

        bertkit fill-mask "He took [MASK] hat." --targets his --targets her

        bertkit fill-mask --model run/ --file texts.jsonl --text-column body --json

        bertkit fill-mask --model google-bert/bert-base-uncased "Paris is in [MASK]."

    Args:
        texts: Texts with at least one [MASK] each, or <mask> for a RoBERTa or MPNet; - alone reads
            standard input.
        json: Print one JSON object per text.
    """
    check_standard_output()
    model = choose_model(model, "words", texts, file)
    named = gather_texts(table := open_input(texts, file, reading))
    from bertkit.inference.fill_mask import FillMask
    from bertkit.inference.stream import TextCounts

    fill = FillMask.load(model, loading).with_options(options)
    counts, is_watched = TextCounts(), sys.stdout.isatty()
    found = stream_results(fill, table, named, "Filling", is_hidden=is_watched, counts=counts)
    for result in found:
        lines = [result.text]
        for number, candidates in enumerate(result.blanks, start=1):
            lines += [f"  blank {number}"] * (len(result.blanks) > 1)
            lines += [
                f"  {format_percent(one.probability):>7} {printable(one.token)}"
                for one in candidates
            ]
        print_result(lines, "\n".join, json=json, facts=result)
    announce_unknown(counts.unknown_tokens, counts.text_tokens)


SHOWN_CHARS = 60  # of a text


def score(
    *texts: Words,
    model: NamedModel = None,
    file: TextFile = None,
    minimal_pairs: Path | None = None,
    data: Path | None = None,
    reading: TableSettings = TableSettings(),
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Score how likely a language model finds texts, without labels.

    Prints each text's log probability and its perplexity per token: 1 is certainty, and a model
    that guesses has the size of its vocabulary. A bidirectional model predicts each token from all
    others (the pseudo log-likelihood), a left-to-right model from those before it. Scores compare
    texts under one model; long texts are split into windows.

    With --minimal-pairs, prints how often the model finds the acceptable one of two sentences
    likelier; with --data, how well it predicts the words of held-out text.

    **Examples**

        bertkit score "The cats are asleep." "The cats is asleep."

        bertkit score --model gpt/ "The captain looked at the sea."

        bertkit score --model run/ --file sentences.txt --json

        bertkit score --model run/ --minimal-pairs blimp.jsonl

        bertkit score --model run/ --data shards/

    Args:
        texts: Texts; - alone reads standard input.
        minimal_pairs: File of records with sentence_good and sentence_bad, and perhaps
            linguistics_term and UID, as BLiMP has them.
        data: Folder of `bertkit prepare`, whose held-out text is predicted as in the evaluations of
            a run.
        json: Print one JSON object per text, and one for all.
    """
    check_standard_output()
    if sum((bool(texts) or file is not None, minimal_pairs is not None, data is not None)) > 1:
        raise SettingsError("give one of: texts or --file, --minimal-pairs, --data")
    model = choose_model(model, "words", texts, file)
    if minimal_pairs is not None:
        score_pairs(model, minimal_pairs, reading, loading, json=json)
        return
    if data is not None:
        score_held_out(model, data, loading, json=json)
        return
    named = gather_texts(table := open_input(texts, file, reading))
    from bertkit.inference.text_scorer import TextScorer

    scorer = TextScorer.load(model, loading)
    logs: list[float] = []
    num_tokens = num_unknown = 0
    for result in stream_results(scorer, table, named, "Scoring"):
        facts = {**asdict(result), "perplexity": result.perplexity}
        line = format_score(result.log_probability, result.perplexity)
        shown = shorten(printable(result.text), SHOWN_CHARS)
        print_result(f"{line} {shown}", str, json=json, facts=facts)
        logs.append(result.log_probability)
        num_tokens += result.num_tokens
        num_unknown += result.num_unknown
    if json or len(logs) > 1:
        from bertkit.tasks.metrics.texts import find_perplexity

        log_probability = math.fsum(logs)
        perplexity = find_perplexity(-log_probability / num_tokens)
        line = format_score(log_probability, perplexity)
        counts = f"{pluralize(len(logs), 'text')}, {pluralize(num_tokens, 'token')}"
        whole = {
            "texts": len(logs),
            "num_tokens": num_tokens,
            "num_unknown": num_unknown,
            "log_probability": log_probability,
            "perplexity": perplexity,
        }
        print_result(f"{line} all {counts}", str, json=json, facts=whole)
    announce_unknown(num_unknown, num_tokens)


def format_score(log_probability: float, perplexity: float) -> str:
    """Format a log probability and a perplexity as the first columns of a line."""
    return f"{log_probability:10,.2f}   perplexity {perplexity:8,.1f}  "


def score_pairs(
    model: str, file: Path, reading: TableSettings, loading: EngineSettings, *, json: bool
) -> None:
    """Print the accuracy of a model on minimal pairs."""
    from bertkit.inference.minimal_pairs import judge_pairs
    from bertkit.inference.text_scorer import TextScorer

    pairs = judge_pairs(partial(TextScorer.load, model, loading), file, reading)
    facts = {name: value for name, value in vars(pairs).items() if name != "outcomes"}
    print_result(pairs, describe_pairs, json=json, facts=facts)


def describe_pairs(result: "PairsResult") -> str:
    """Describe the accuracy on minimal pairs in a table by phenomenon; announce problems."""
    for problem in result.problems:
        announce(legible(problem))
    width = max(map(len, ["all", *result.phenomena]))

    def describe_row(name: str, found: "PairAccuracy") -> str:
        return (
            f"{legible(name):<{width}} "
            f" {format_metric('accuracy', found.accuracy, found.interval):>22}"
            f"  {pluralize(found.num_pairs, 'pair'):>12}"
        )

    rows = [describe_row(name, found) for name, found in result.phenomena.items()]
    return "\n".join([*rows, describe_row("all", result.whole)])


def score_held_out(model: str, data: Path, loading: EngineSettings, *, json: bool) -> None:
    """Print how well a model predicts the words of held-out text."""
    if (loading.engine, loading.precision) != ("auto", "auto"):
        raise SettingsError("--data is evaluated as in training: no engine, no precision")
    require_torch("`bertkit score --data`")
    from bertkit.recipes.pretrain.held_out import evaluate_held_out

    result = evaluate_held_out(model, data, loading.device, revision=loading.revision)
    counted = {
        "document": result.num_documents,
        "sequence": result.num_sequences,
        "predicted word": result.num_predicted,
    }
    counts = ", ".join(pluralize(number, noun) for noun, number in counted.items())
    (bits,) = (
        value for name, value in result.metrics.items() if name.endswith("_bits_per_character")
    )
    lines = (
        f"{counts}, up to {result.max_length} tokens at a time",
        describe_metrics(result.metrics),
        f"{format_number(bits)} bits per character",
    )
    print_result(lines, "\n".join, json=json, facts=result)
