"""Settings of the tokenizer and of vocabulary training."""

from typing import Annotated

from pydantic import Field

from bertkit.base.settings import NO_FLAG, Count, Settings, select


class TokenizerSettings(Settings):
    """How text is normalized before it is split into pieces; stored with the vocabulary.

    The three are independent. BERT's own pairs are all true ("uncased"), and lower-casing and
    accent stripping both false ("cased").
    """

    lowercase: bool = Field(default=True, description="Convert text to lowercase.")
    strip_accents: bool = Field(
        default=True,
        description="Remove accents (combining marks), so that é and e are the same letter.",
    )
    split_cjk: Annotated[bool, NO_FLAG] = Field(
        default=True,
        description="Split Chinese characters (and Japanese kanji) into separate words.",
    )


MAX_WORD_CHARS = 100  # a longer word is [UNK]
MAX_ENTRIES = 1_000_000  # limit for any vocabulary
UNCASED = TokenizerSettings()
CASED = TokenizerSettings(lowercase=False, strip_accents=False)
UNCHANGED = TokenizerSettings(lowercase=False, strip_accents=False, split_cjk=False)


class VocabularySettings(TokenizerSettings):
    """Settings of vocabulary training."""

    vocab_size: int = Field(
        default=30_522,
        ge=6,
        le=MAX_ENTRIES,
        description="Size of the vocabulary, special tokens included.",
    )
    min_frequency: Annotated[Count, NO_FLAG] = Field(
        default=2,
        description="How often two pieces must occur together to be merged into one entry.",
    )
    alphabet_limit: Annotated[Count, NO_FLAG] = Field(
        default=1000,
        description="Number of characters to keep, the most frequent first; others become [UNK].",
    )

    def tokenizer_settings(self) -> TokenizerSettings:
        """Return the part that is stored with the vocabulary."""
        return select(TokenizerSettings, self)
