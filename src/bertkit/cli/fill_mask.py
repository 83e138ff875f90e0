"""`bertkit fill-mask`: the likeliest words for each [MASK]."""

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.progress import show_progress
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, gather_texts, printable
from bertkit.inference.engines.names import EngineName

if TYPE_CHECKING:
    from bertkit.inference.fill_mask import FilledText


def fill_mask(
    model: str,
    /,
    *texts: Words,
    file: Path | None = None,
    top_k: int = 5,
    targets: list[str] | None = None,
    device: str = "auto",
    revision: str | None = None,
    engine: EngineName = "auto",
    json: bool = False,
) -> None:
    """Fill the blanks of a text: the likeliest words for each [MASK].

    **Examples**

        bertkit fill-mask run/ "The doctor ran to see [MASK] patient." --top-k 5

        bertkit fill-mask run/ "He took [MASK] hat." --targets his --targets her

        bertkit fill-mask run/ --file texts.txt --json

        bertkit fill-mask google-bert/bert-base-uncased "Paris is the [MASK] of France."

    Args:
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub.
        texts: Texts with at least one [MASK] each; - reads standard input, a text a line.
        file: File with a text a line, of any length.
        top_k: Candidates of each blank.
        targets: Only these words are candidates; give the flag once for each.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        engine: Inference engine; auto takes the fastest one that is installed.
        json: Print one JSON object a text.
    """
    check_standard_output()
    named = gather_texts(texts, file)
    from bertkit.inference.fill_mask import FillMask
    from bertkit.inference.named_texts import NamedText

    fill = FillMask.load(model, device, revision=revision, engine=engine)
    filled = fill.stream(starmap(NamedText, named), top_k=top_k, targets=targets)
    if sys.stdout.isatty():  # what is printed shows how far it is
        for result in filled:
            sys.stdout.write(describe(result, json=json))
        return
    with show_progress("Filling", find_size(texts, file), is_bytes=True) as progress:
        for result in filled:
            sys.stdout.write(describe(result, json=json))
            progress.advance(len(result.text.encode(errors="replace")) + 1)


def find_size(texts: Sequence[str], file: Path | None) -> int | None:
    """Bytes of all texts; None where nobody knows."""
    return None if file is None or texts or not file.is_file() else file.stat().st_size


def describe(result: "FilledText", *, json: bool) -> str:
    """A result as lines, for people or as JSON."""
    if json:
        return json_module.dumps(asdict(result), ensure_ascii=False) + "\n"
    lines = [result.text]
    for number, candidates in enumerate(result.blanks, start=1):
        if len(result.blanks) > 1:
            lines.append(f"  blank {number}")
        lines += [f"  {100 * one.probability:5.1f} % {printable(one.token)}" for one in candidates]
    return "".join(f"{line}\n" for line in lines)
