"""Functions that make a vocabulary and shards of texts for pre-training, without PyTorch.

Each resumes what it left unfinished in `output`, and returns at once what is finished there.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bertkit.api.inputs import Texts, choose_output, list_inputs
from bertkit.api.settings import build, takes
from bertkit.base.addresses import name_beside
from bertkit.base.parts import WorkersSettings
from bertkit.base.progress import announce
from bertkit.checkpoints.hub import resolve_tokenizer
from bertkit.data.shards import ShardSet
from bertkit.recipes.prepare.run import prepare as run_prepare
from bertkit.recipes.settings import PrepareSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings
from bertkit.recipes.train_tokenizer import train_tokenizer as run_train_tokenizer
from bertkit.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bertkit.api.keywords import PrepareKeywords, TrainTokenizerKeywords


@takes(TrainTokenizerSettings)
def train_tokenizer(
    texts: Texts,
    *,
    output: str | Path | None = None,
    overwrite: bool = False,
    **settings: "Unpack[TrainTokenizerKeywords]",
) -> Tokenizer:
    """Train a WordPiece vocabulary, as `bertkit train-tokenizer`.

    Args:
        texts: a list of texts, a data frame, or a file, folder or glob by name.
        output: the tokenizer's folder; by default a temporary one.
        overwrite: replace an older tokenizer in `output`.

    Further keyword arguments: fields of `TrainTokenizerSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.train_tokenizer.train_tokenizer`.

    Examples:
        >>> texts = ["the cat sat on the mat", "the dog ate the cake"]
        >>> bertkit.train_tokenizer(texts, vocab_size=30, min_frequency=1).vocab_size
        30
    """
    chosen = build(TrainTokenizerSettings, settings)
    result = run_train_tokenizer(
        list_inputs(texts, chosen.text_column),
        choose_output(output, "tokenizer"),
        chosen,
        overwrite=overwrite,
    )
    for line in result.list_problems():
        announce(line)
    return result.tokenizer


@takes(PrepareSettings, WorkersSettings)
def prepare(
    texts: Texts,
    tokenizer: str | Path | Tokenizer,
    *,
    output: str | Path | None = None,
    dev: Texts | None = None,
    overwrite: bool = False,
    **settings: "Unpack[PrepareKeywords]",
) -> ShardSet:
    """Tokenize text into shards for pre-training, as `bertkit prepare`.

    Args:
        texts: a list of texts, each a document; a data frame; or a file, folder or glob by name.
        tokenizer: a tokenizer, which is then saved beside the shards; its folder or `vocab.txt`, or
            the id of a model of the Hub.
        output: folder for the shards; by default a temporary one.
        dev: held-out texts, as `texts`; without them, a share is held out (`held_out`).
        overwrite: replace shards of other texts or settings in `output`.

    Further keyword arguments: fields of `PrepareSettings` and `WorkersSettings`.

    Raises:
        BertkitError: as in `bertkit.recipes.prepare.run.prepare`.
    """
    chosen, workers = build(PrepareSettings, settings), build(WorkersSettings, settings)
    place, column = choose_output(output, "shards"), chosen.text_column
    if isinstance(tokenizer, Tokenizer):
        folder = name_beside(place, "-tokenizer") or choose_output(None, "tokenizer")
        tokenizer.save(folder)
    else:
        folder = resolve_tokenizer(tokenizer)
    result = run_prepare(
        list_inputs(texts, column),
        folder,
        place,
        chosen,
        held_out_inputs=[] if dev is None else list_inputs(dev, column),
        workers=workers,
        overwrite=overwrite,
    )
    for line in result.report:
        announce(line)
    return ShardSet.open(place)
