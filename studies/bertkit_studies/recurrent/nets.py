"""All recurrent networks, by the `model_type` of their config."""

from bertkit_studies.recurrent.classifier import RecurrentClassifier
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel
from bertkit_studies.recurrent.net import SavedNet
from bertkit_studies.recurrent.skip_thought import SkipThought
from bertkit_studies.recurrent.translator import AttentionalTranslator
from bertkit_studies.recurrent.word_vectors import StaticVectors

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
