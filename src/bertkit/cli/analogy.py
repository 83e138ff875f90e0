"""`bertkit analogy`: solve word analogies."""

from typing import Annotated

from cyclopts import Parameter

from bertkit.base.errors import InputError
from bertkit.base.surrogates import replace_surrogates
from bertkit.cli.default_model import take_model
from bertkit.cli.nearest import show_neighborhood
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words
from bertkit.inference.engines.names import EngineName, PrecisionName


def analogy(
    *words: Words,
    model: str | None = None,
    minus: list[str] | None = None,
    layer: int = 0,
    top_k: int = 10,
    whole_words: Annotated[bool, Parameter(negative="--all-entries")] = True,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Solve a word analogy: kitten + dog - puppy.

    Normalizes the vectors to length 1, adds those of the words, subtracts those of --minus, and
    lists the entries of the vocabulary with the highest cosine to the sum (3CosAdd). The given
    words and their pieces are excluded from the answer, as is usual; without that, the answer is
    often one of them.

    Layers, and words of several pieces, are handled as by `bertkit nearest`.

    **Examples**

        bertkit analogy kitten dog --minus puppy

        bertkit analogy run/ kitten dog --minus puppy

        bertkit analogy google-bert/bert-base-uncased king woman --minus man --top-k 5 --json

    Args:
        words: Words to add; the first argument may be the model.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        minus: A word to subtract; repeat the flag for more.
        layer: 0 for the word embeddings, 1 for the first block, -1 for the last.
        top_k: Number of entries.
        whole_words: List only whole words; otherwise also pieces (##), special and unused entries.
        engine: The inference engine for layers above 0; auto uses the fastest that is installed.
        precision: Precision of matrix products for layers above 0: auto takes bf16 where it was
            measured to be faster, else fp32; int8 is faster on processors with VNNI, and less
            exact.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object.
    """
    check_standard_output()
    model, words = take_model(words, model, "vectors")
    if not words:
        raise InputError("there is no word; give at least one to add")
    from bertkit.embeddings.word_vectors import WordVectors

    words, minus = replace_surrogates((words, minus))
    vectors = WordVectors.load(
        model,
        layer=layer,
        whole_words=whole_words,
        engine=engine,
        precision=precision,
        device=device,
        revision=revision,
    )
    show_neighborhood(vectors.nearest(words, minus or (), top_k=top_k), json=json)
