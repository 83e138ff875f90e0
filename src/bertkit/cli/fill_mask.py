"""`bertkit fill-mask`: predict the words at each [MASK]."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import InputError, pluralize
from bertkit.base.settings import replace_surrogates
from bertkit.cli.output import check_standard_output, print_result
from bertkit.cli.texts import (
    NamedModel,
    Words,
    find_size,
    gather_texts,
    printable,
    stream_results,
    take_model,
)
from bertkit.inference.settings import EngineSettings, FillOptions
from bertkit.reports.text import format_percent

if TYPE_CHECKING:
    from bertkit.inference.fill_mask import FilledText
    from bertkit.models.open_model import OpenModel

CHANCE, MARGIN = 0.5, 0.1  # of the accuracy of next sentences


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

    fill = FillMask.load(model, loading).with_options(options)
    size, is_watched = find_size(texts, file), sys.stdout.isatty()
    for result in stream_results(fill, named, "Filling", size, is_hidden=is_watched):
        print_result(result, describe, json=json)


def describe(result: "FilledText") -> str:
    """Describe the words of each [MASK]."""
    lines = [result.text]
    for number, candidates in enumerate(result.blanks, start=1):
        if len(result.blanks) > 1:
            lines.append(f"  blank {number}")
        lines += [
            f"  {format_percent(one.probability):>7} {printable(one.token)}" for one in candidates
        ]
    return "\n".join(lines)


def next_sentence(
    *texts: Words,
    model: NamedModel = None,
    loading: EngineSettings = EngineSettings(),
    json: bool = False,
) -> None:
    """Say whether the second text follows the first (IsNext) or not (NotNext).

    A second line says how often the model is right on held-out pairs, if its run recorded it.

    **Examples**

        bertkit next-sentence "She opened the door." "The room was dark."

        bertkit next-sentence run/ "She opened the door." "The room was dark."

    Args:
        texts: Two texts; a third argument before them is the model.
        json: Print one JSON object.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", num_texts=2)
    if len(texts) != 2:
        raise InputError(f"got {pluralize(len(texts), 'text')}; give two")
    from bertkit.inference.next_sentence import NextSentence

    first, second = replace_surrogates(texts)
    predictor = NextSentence.load(model, loading)
    probability = predictor((first, second))
    print_result(
        probability,
        lambda _: f"{describe_relation(probability)}\n{describe_accuracy(predictor.loaded.opened)}",
        json=json,
        facts={"first": first, "second": second, "is_next": probability},
    )


def describe_relation(probability: float) -> str:
    """Say whether the second text follows the first, with the probability of that answer."""
    if probability >= CHANCE:
        return f"IsNext: {format_percent(probability)} probability that the second text follows"
    shown = format_percent(1 - probability)
    return f"NotNext: {shown} probability that the second text doesn't follow"


def describe_accuracy(opened: "OpenModel | None") -> str:
    """Say how often a model is right on held-out pairs, with a warning near chance."""
    from bertkit.jobs.inspect import describe_training

    training = None if opened is None else describe_training(opened)
    accuracy = ((training or {}).get("held_out") or {}).get("nsp_accuracy")
    if accuracy is None:
        return "How often this model is right isn't recorded with it."
    right = f"This model is right on {format_percent(accuracy)} of held-out pairs"
    if accuracy < CHANCE + MARGIN:
        return f"{right}, near chance ({format_percent(CHANCE)}): its answer says little."
    return f"{right}."
