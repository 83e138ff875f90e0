"""`bertkit nearest`: find the nearest neighbors of words."""

import json as json_module
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import InputError
from bertkit.base.surrogates import replace_surrogates
from bertkit.cli.default_model import take_model
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, printable
from bertkit.inference.engines.names import EngineName, PrecisionName

if TYPE_CHECKING:
    from bertkit.embeddings.word_vectors import Neighbors


def nearest(
    *words: Words,
    model: str | None = None,
    layer: int = 0,
    top_k: int = 10,
    whole_words: Annotated[bool, Parameter(negative="--all-entries")] = True,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    device: str = "auto",
    revision: str | None = None,
    json: bool = False,
) -> None:
    """List the entries of a vocabulary that are nearest to a word by cosine similarity.

    At layer 0, vectors are the word embeddings. At a higher layer, each entry goes through the
    model alone, as [CLS] entry [SEP], which takes far longer; this is done once per call, for all
    words, and isn't cached.

    A word of several pieces gets the mean of their vectors; the pieces are printed. The word itself
    and its pieces are excluded from the answer.

    **Examples**

        bertkit nearest bank

        bertkit nearest run/ bank --top-k 5

        bertkit nearest google-bert/bert-base-uncased bank river --layer -1

        bertkit nearest bert-base/ run --all-entries --json

    Args:
        words: Words or entries of the vocabulary; each gets its own list. The first may be the
            model.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        layer: 0 for the word embeddings, 1 for the first block, -1 for the last.
        top_k: Number of neighbors per word.
        whole_words: List only whole words; otherwise also pieces (##), special and unused entries.
        engine: The inference engine for layers above 0; auto uses the fastest that is installed.
        precision: Precision of matrix products for layers above 0: auto takes bf16 where it was
            measured to be faster, else fp32; int8 is faster on processors with VNNI, and less
            exact.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
        json: Print one JSON object per word.
    """
    check_standard_output()
    model, words = take_model(words, model, "vectors")
    if not words:
        raise InputError("there is no word; give at least one")
    from bertkit.embeddings.word_vectors import WordVectors

    words = replace_surrogates(words)
    vectors = WordVectors.load(
        model,
        layer=layer,
        whole_words=whole_words,
        engine=engine,
        precision=precision,
        device=device,
        revision=revision,
    )
    found = [vectors.nearest(word, top_k=top_k) for word in words]
    for neighborhood in found:
        show_neighborhood(neighborhood, json=json)


def show_neighborhood(found: "Neighbors", *, json: bool) -> None:
    """Print the neighbors of a word or a sum of words."""
    if json:
        print(json_module.dumps(asdict(found), ensure_ascii=False))
        return
    named = [("+", word) for word in found.plus] + [("-", word) for word in found.minus]
    print(" ".join(f"{sign} {printable(word.word)}" for sign, word in named).removeprefix("+ "))
    for _, word in named:
        if len(word.pieces) > 1:
            print(f"  {printable(word.word)} is the mean of {printable(' '.join(word.pieces))}")
    for neighbor in found.neighbors:
        print(f"  {neighbor.similarity:6.3f} {printable(neighbor.token)}")
