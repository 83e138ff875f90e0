"""`bertkit next-sentence`: next-sentence prediction."""

import json as json_module

from bertkit.base.errors import InputError
from bertkit.base.surrogates import replace_surrogates
from bertkit.base.wording import pluralize
from bertkit.cli.default_model import take_model
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words
from bertkit.inference.engines.names import EngineName, PrecisionName


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
