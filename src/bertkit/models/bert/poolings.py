"""Modules behind an encoder that are trained with it: those of a folder, or the mean of tokens."""

from dataclasses import replace
from typing import TYPE_CHECKING

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel

if TYPE_CHECKING:
    from bertkit.models.open_model import OpenModel

TRAINED_POOLINGS = ("cls", "mean", "max")


def read_sentences(opened: "OpenModel") -> SentenceModel:
    """Return the modules of a model's folder; of a plain BERT, the mean of its tokens.

    It is a `CheckpointError` if the folder pools in a way that isn't trained.
    """
    size, found = opened.config.hidden_size, opened.sentences
    if found is None:
        positions = opened.config.max_length
        length = min(opened.model_max_length or positions, positions)
        return SentenceModel((Pooling(size, ("mean",)),), length, similarity="cosine")
    pooling = found.modules[0]
    assert isinstance(pooling, Pooling), "the reader checked it"
    if not set(pooling.modes) <= set(TRAINED_POOLINGS) or not pooling.include_prompt:
        how = ", ".join(pooling.modes) if pooling.include_prompt else "tokens without the prompt"
        raise CheckpointError(
            f"{opened.folder} pools {how}, and bertkit trains {', '.join(TRAINED_POOLINGS)} of all"
            " tokens; take another model"
        )
    return replace(found, similarity="cosine")
