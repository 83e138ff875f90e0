"""`bertkit fill-mask`: predict the words at each [MASK]."""

import json as json_module
import sys
from dataclasses import asdict
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import show_progress
from bertkit.base.settings import replace_surrogates
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, find_size, gather_texts, printable, take_model
from bertkit.inference.settings import EngineName, PrecisionName

if TYPE_CHECKING:
    from bertkit.inference.fill_mask import FilledText


def fill_mask(
    *texts: Words,
    model: str | None = None,
    file: Path | None = None,
    top_k: int = 5,
    targets: list[str] | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
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
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        file: File with one text per line, of any length.
        top_k: Number of candidates per [MASK].
        targets: Consider only this word; repeat the flag for more.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        engine: The inference engine; auto uses the fastest that is installed.
        precision: Precision of matrix products: auto takes bf16 where it was measured to be
            faster, else fp32; int8 is faster on processors with VNNI, and less exact.
        json: Print one JSON object per text.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", file=file)
    named = gather_texts(texts, file)
    from bertkit.inference.fill_mask import FillMask
    from bertkit.inference.predictor import NamedText

    fill = FillMask.load(model, device, revision=revision, engine=engine, precision=precision)
    filled = fill.stream(starmap(NamedText, named), top_k=top_k, targets=targets)
    size, is_watched = find_size(texts, file), sys.stdout.isatty()
    with show_progress("Filling", size, is_bytes=True, is_hidden=is_watched) as progress:
        for result in filled:
            sys.stdout.write(describe(result, json=json))
            progress.advance(len(result.text.encode(errors="replace")) + 1)


def describe(result: "FilledText", *, json: bool) -> str:
    """Format a result as text or JSON."""
    if json:
        return json_module.dumps(asdict(result), ensure_ascii=False) + "\n"
    lines = [result.text]
    for number, candidates in enumerate(result.blanks, start=1):
        if len(result.blanks) > 1:
            lines.append(f"  blank {number}")
        lines += [f"  {100 * one.probability:5.1f} % {printable(one.token)}" for one in candidates]
    return "".join(f"{line}\n" for line in lines)


def next_sentence(
    *texts: Words,
    model: str | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    json: bool = False,
) -> None:
    """Compute the probability that the second text follows the first.

    **Examples**

        bertkit next-sentence "She opened the door." "The room was dark."

        bertkit next-sentence run/ "She opened the door." "The room was dark."

    Args:
        texts: Two texts; a third argument before them is the model.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        engine: The inference engine; auto uses the fastest that is installed.
        precision: Precision of matrix products: auto takes bf16 where it was measured to be
            faster, else fp32; int8 is faster on processors with VNNI, and less exact.
        json: Print one JSON object.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "words", num_texts=2)
    if len(texts) != 2:
        raise InputError(f"got {pluralize(len(texts), 'text')}; give two")
    from bertkit.inference.next_sentence import NextSentence

    first, second = replace_surrogates(texts)
    predict = NextSentence.load(
        model, device, revision=revision, engine=engine, precision=precision
    )
    probability = predict(first, second)
    if json:
        found = {"first": first, "second": second, "is_next": probability}
        print(json_module.dumps(found, ensure_ascii=False))
    else:
        print(f"{100 * probability:.1f} % probability that it follows")
