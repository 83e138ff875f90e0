"""Settings of `bertkit train-tokenizer`."""

from bertkit.data.readers.settings import ReaderSettings
from bertkit.tokenization.settings import VocabularySettings


class TrainTokenizerSettings(VocabularySettings, ReaderSettings):
    """Settings of `bertkit train-tokenizer`."""
