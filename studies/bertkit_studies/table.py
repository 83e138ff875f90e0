"""All studies: what is known of each without loading torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bertkit.base.wings import load_object

if TYPE_CHECKING:
    from bertkit_studies.settings import StudySettings
    from bertkit_studies.study import Study


@dataclass(frozen=True)
class StudyEntry:
    """A study, before its code is loaded.

    Attributes:
        settings_home: its settings, as `module:Class`.
        summary: what it asks, in a sentence, for `--help`.
        home: module and class, as `module:Class`.
        arm: one of its arms, for examples in `--help`.
        inputs: flags of examples in `--help`.
    """

    settings_home: str
    summary: str
    home: str
    arm: str
    inputs: str = "--data shards/"

    @cached_property
    def settings(self) -> "type[StudySettings]":
        """The class of its settings."""
        kind: type[StudySettings] = load_object(self.settings_home)
        return kind

    def load(self) -> "type[Study[Any]]":
        """The study's class."""
        kind: type[Study[Any]] = load_object(self.home)
        return kind


STUDIES: Mapping[str, StudyEntry] = {
    "bidirectional": StudyEntry(
        "bertkit_studies.settings:PretrainingSettings",
        "Are bidirectional models better than left-to-right ones?",
        "bertkit_studies.experiments.bidirectional:Bidirectional",
        "left-to-right",
    ),
    "next-sentence": StudyEntry(
        "bertkit_studies.settings:PretrainingSettings",
        "Does next sentence prediction help?",
        "bertkit_studies.experiments.next_sentence:NextSentence",
        "without",
    ),
    "masking": StudyEntry(
        "bertkit_studies.settings:PretrainingSettings",
        "How should words be masked, and how many?",
        "bertkit_studies.experiments.masking:Masking",
        "rate-40",
    ),
    "size": StudyEntry(
        "bertkit_studies.settings:PretrainingSettings",
        "Are larger models better on the same text?",
        "bertkit_studies.experiments.size:Size",
        "mini",
    ),
    "steps": StudyEntry(
        "bertkit_studies.settings:PretrainingSettings",
        "Is longer pre-training better?",
        "bertkit_studies.experiments.steps:Steps",
        "bert",
    ),
    "recipe": StudyEntry(
        "bertkit_studies.settings:PretrainingSettings",
        "Which settings of pre-training are worth their time?",
        "bertkit_studies.experiments.recipe:TrainingRecipes",
        "neighbors",
    ),
    "recurrent": StudyEntry(
        "bertkit_studies.settings:RecurrentSettings",
        "Does attention carry information further than recurrent nets?",
        "bertkit_studies.experiments.recurrent:Recurrent",
        "lstm",
        "--longest 64",
    ),
    "features": StudyEntry(
        "bertkit_studies.settings:FeaturesSettings",
        "Is fine-tuning better than frozen features?",
        "bertkit_studies.experiments.features:Features",
        "skip-gram",
    ),
    "translation": StudyEntry(
        "bertkit_studies.settings:TranslationSettings",
        "Does a Transformer translate better than a recurrent net with attention?",
        "bertkit_studies.experiments.translation:Translation",
        "bahdanau",
        "--train train.de train.en --dev val.de val.en",
    ),
}
