"""`bertkit fill-mask`: the likeliest words for each [MASK]."""

import json as json_module
from dataclasses import asdict
from pathlib import Path

from bertkit.cli.texts import Words, gather_texts, printable


def fill_mask(
    model: str,
    /,
    *texts: Words,
    file: Path | None = None,
    top_k: int = 5,
    targets: list[str] | None = None,
    device: str = "auto",
    revision: str | None = None,
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
        file: File with a text a line.
        top_k: Candidates of each blank.
        targets: Only these words are candidates; give the flag once for each.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object a text.
    """
    names, lines = zip(*gather_texts(texts, file), strict=True)
    from bertkit.inference.fill_mask import FillMask

    fill = FillMask.load(model, device, revision=revision)
    results = fill(lines, top_k=top_k, targets=targets, names=names)
    for result in results:
        if json:
            print(json_module.dumps(asdict(result), ensure_ascii=False))
            continue
        print(result.text)
        for number, candidates in enumerate(result.blanks, start=1):
            if len(result.blanks) > 1:
                print(f"  blank {number}")
            for candidate in candidates:
                print(f"  {100 * candidate.probability:5.1f} % {printable(candidate.token)}")
