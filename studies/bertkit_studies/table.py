"""All studies: what is known of each without loading torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bertkit_studies.settings import (
    FeaturesSettings,
    PretrainingSettings,
    RecurrentSettings,
    StudySettings,
    TranslationSettings,
)

if TYPE_CHECKING:
    from bertkit_studies.study import Study


@dataclass(frozen=True)
class StudyEntry:
    """A study, before its code is loaded.

    Attributes:
        settings: its settings.
        summary: what it asks, in a sentence, for `--help`.
        home: module and class, as `module:Class`.
        arm: one of its arms, for examples in `--help`.
        inputs: flags of examples in `--help`.
    """

    settings: type[StudySettings]
    summary: str
    home: str
    arm: str
    inputs: str = "--data shards/"

    def load(self) -> "type[Study[Any]]":
        """The study's class."""
        module, _, name = self.home.partition(":")
        kind: type[Study[Any]] = getattr(import_module(module), name)
        return kind


STUDIES: Mapping[str, StudyEntry] = {
    "bidirectional": StudyEntry(
        PretrainingSettings,
        "Are bidirectional models better than left-to-right ones?",
        "bertkit_studies.experiments.bidirectional:Bidirectional",
        "left-to-right",
    ),
    "next-sentence": StudyEntry(
        PretrainingSettings,
        "Does next sentence prediction help?",
        "bertkit_studies.experiments.next_sentence:NextSentence",
        "without",
    ),
    "masking": StudyEntry(
        PretrainingSettings,
        "How should words be masked, and how many?",
        "bertkit_studies.experiments.masking:Masking",
        "rate-40",
    ),
    "size": StudyEntry(
        PretrainingSettings,
        "Are larger models better on the same text?",
        "bertkit_studies.experiments.size:Size",
        "mini",
    ),
    "steps": StudyEntry(
        PretrainingSettings,
        "Is longer pre-training better?",
        "bertkit_studies.experiments.steps:Steps",
        "bert",
    ),
    "recipe": StudyEntry(
        PretrainingSettings,
        "Which settings of pre-training are worth their time?",
        "bertkit_studies.experiments.recipe:TrainingRecipes",
        "neighbors",
    ),
    "recurrent": StudyEntry(
        RecurrentSettings,
        "Does attention carry information further than recurrent nets?",
        "bertkit_studies.experiments.recurrent:Recurrent",
        "lstm",
        "--longest 64",
    ),
    "features": StudyEntry(
        FeaturesSettings,
        "Is fine-tuning better than frozen features?",
        "bertkit_studies.experiments.features:Features",
        "skip-gram",
    ),
    "translation": StudyEntry(
        TranslationSettings,
        "Does a Transformer translate better than a recurrent net with attention?",
        "bertkit_studies.experiments.translation:Translation",
        "bahdanau",
        "--train train.de train.en --dev val.de val.en",
    ),
}
