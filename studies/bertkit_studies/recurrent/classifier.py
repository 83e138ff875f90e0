"""A text classifier on the states of a recurrent network.

Source: max-pooling: Conneau et al. 2017, "Supervised Learning of Universal Sentence
Representations from Natural Language Inference Data", section 3.2.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.base.errors import SettingsError
from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.config import ClassifierConfig, ReaderConfig
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel
from bertkit_studies.recurrent.net import SavedNet, count_weights
from bertkit_studies.recurrent.packed_nets import join_ends
from bertkit_studies.recurrent.reader import Reader

READER_SIZES = set(ReaderConfig.model_fields) - {"model_type", "dropout"}


class RecurrentClassifier(SavedNet):
    """Reads a text and computes a logit for each class.

    Args:
        config: the sizes.
    """

    config_kind = ClassifierConfig
    config: ClassifierConfig

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__(config)
        self.reader = Reader(config)
        self.classifier = nn.Linear(self.reader.num_features, config.num_labels)

    def encode(self, batch: PackedBatch) -> Float[Tensor, "sequences features"]:
        """Return a vector for each text."""
        states = self.reader(batch)
        if self.config.pooling == "max":
            return torch.stack([part.amax(dim=0) for part in states.split(batch.lengths)])
        if self.config.is_bidirectional:
            return join_ends(states, batch)
        last: Tensor = states.index_select(0, batch.last_tokens)
        return last

    def scores(self, batch: PackedBatch) -> Float[Tensor, "sequences labels"]:
        """Return logits of all classes, one row per text."""
        scores: Tensor = self.classifier(self.encode(batch))
        return scores

    def loss(
        self, batch: PackedBatch, labels: Int[Tensor, " sequences"]
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return the sum of the cross-entropies, and the number of correct predictions."""
        scores = self.scores(batch).float()
        num_hits = (scores.argmax(dim=1) == labels).sum()
        return F.cross_entropy(scores, labels, reduction="sum"), num_hits

    def warm_start(self, parent: RecurrentLanguageModel, *, freezes: bool = False) -> None:
        """Initialize the reader with a language model of the same sizes.

        Args:
            parent: the language model.
            freezes: whether to freeze the reader and train only the classifier on its states.

        Raises:
            SettingsError: the sizes differ.
        """
        ours, theirs = (
            config.model_dump(include=READER_SIZES) for config in (self.config, parent.config)
        )
        if ours != theirs:
            raise SettingsError(
                f"the language model's sizes are {theirs}, and the classifier's {ours}; they must"
                " be the same"
            )
        self.reader.load_state_dict(parent.reader.state_dict())
        self.reader.requires_grad_(not freezes)

    def count_operations(self, batch: PackedBatch) -> float:
        """Count a training step's operations, as in `RecurrentLanguageModel`.

        A frozen reader has no backward pass.
        """
        is_trained = any(each.requires_grad for each in self.reader.parameters())
        reading = batch.num_tokens * self.reader.count_weights()
        scoring = len(batch.lengths) * count_weights(self.classifier)
        return (6.0 if is_trained else 2.0) * reading + 6.0 * scoring
