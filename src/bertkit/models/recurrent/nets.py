"""All recurrent networks, by the `model_type` of their config."""

from bertkit.models.recurrent.classifier import RecurrentClassifier
from bertkit.models.recurrent.language_model import RecurrentLanguageModel
from bertkit.models.recurrent.net import SavedNet
from bertkit.models.recurrent.skip_thought import SkipThought
from bertkit.models.recurrent.translator import AttentionalTranslator
from bertkit.models.recurrent.word_vectors import StaticVectors

KINDS: tuple[type[SavedNet], ...] = (
    RecurrentLanguageModel,
    RecurrentClassifier,
    SkipThought,
    AttentionalTranslator,
    StaticVectors,
)
NETS: dict[str, type[SavedNet]] = {
    kind.config_kind.model_fields["model_type"].default: kind for kind in KINDS
}
