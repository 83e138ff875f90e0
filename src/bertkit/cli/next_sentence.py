"""`bertkit next-sentence`: next-sentence prediction."""

import json as json_module

from bertkit.base.surrogates import replace_surrogates
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words


def next_sentence(
    model: str,
    first: Words,
    second: Words,
    /,
    *,
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Compute the probability that the second text follows the first.

    **Examples**

        bertkit next-sentence run/ "She opened the door." "The room was dark."

    Args:
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub.
        first: The first text.
        second: The text that may follow.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object.
    """
    check_standard_output()
    from bertkit.inference.next_sentence import NextSentence

    first, second = replace_surrogates((first, second))
    probability = NextSentence.load(model, device, revision=revision)(first, second)
    if json:
        found = {"first": first, "second": second, "is_next": probability}
        print(json_module.dumps(found, ensure_ascii=False))
    else:
        print(f"{100 * probability:.1f} % probability that it follows")
