"""`bertkit analogy`: the words nearest to a sum of words."""

from typing import Annotated

from cyclopts import Parameter

from bertkit.base.errors import InputError
from bertkit.base.surrogates import replace_surrogates
from bertkit.cli.nearest import show_neighborhood
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words
from bertkit.inference.engines.names import EngineName


def analogy(
    model: str,
    /,
    *words: Words,
    minus: list[str] | None = None,
    layer: int = 0,
    top_k: int = 10,
    whole_words: Annotated[bool, Parameter(negative="--all-entries")] = True,
    engine: EngineName = "auto",
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Find what is to kitten as dog is to puppy: kitten + dog - puppy.

    Adds the words' vectors, takes those of --minus away, each brought to length 1 before, and
    lists the entries of the vocabulary with the highest cosine to the sum (3CosAdd). The words that
    were named, and their pieces, are left out of the answer, as it is done everywhere; without that
    the answer is often one of them.

    Layers are those of `bertkit nearest`, and so is what becomes of a word that isn't one entry.

    **Examples**

        bertkit analogy run/ kitten dog --minus puppy

        bertkit analogy google-bert/bert-base-uncased king woman --minus man --top-k 5 --json

    Args:
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub.
        words: Words to add.
        minus: A word to take away; give the flag once for each.
        layer: 0 for the word embeddings, 1 for the first block, -1 for the last.
        top_k: How many entries.
        whole_words: Answer with whole words; otherwise with pieces (##), special and unused entries
            too.
        engine: The program that computes a layer above 0; auto takes the fastest that is installed.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object.
    """
    check_standard_output()
    if not words:
        raise InputError("no word is given; name at least one to add")
    from bertkit.embeddings.word_vectors import WordVectors

    words, minus = replace_surrogates((words, minus))
    vectors = WordVectors.load(
        model, layer=layer, whole_words=whole_words, engine=engine, device=device, revision=revision
    )
    show_neighborhood(vectors.nearest(words, minus or (), top_k=top_k), json=json)
