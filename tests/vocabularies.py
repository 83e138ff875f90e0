"""Vocabularies trained on a few texts."""

from collections.abc import Iterable

from bertkit.tokenization.settings import VocabularySettings
from bertkit.tokenization.training import build_vocabulary, count_words


def train_vocabulary(texts: Iterable[str], settings: VocabularySettings) -> list[str]:
    return build_vocabulary(count_words(texts, settings), settings)
