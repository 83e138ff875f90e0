"""A table of static word vectors."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.config import StaticVectorsConfig
from bertkit_studies.recurrent.net import SavedNet


class StaticVectors(SavedNet):
    """A frozen table of word vectors; a text's vector is the mean of its tokens' vectors.

    Args:
        config: the sizes.
    """

    config_kind = StaticVectorsConfig
    config: StaticVectorsConfig

    def __init__(self, config: StaticVectorsConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.vector_size)
        self.embeddings.weight.requires_grad_(False)

    def encode(self, batch: PackedBatch) -> Float[Tensor, "sequences features"]:
        """Return the mean vector of each text's known tokens; zeros if it has none."""
        vectors = self.embeddings(batch.input_ids)
        sums = torch.stack([part.sum(dim=0) for part in vectors.split(batch.lengths)])
        is_known = vectors.any(dim=1)
        counts = torch.stack([part.sum() for part in is_known.split(batch.lengths)])
        return sums / counts.clamp(min=1)[:, None]
