"""Settings of the tokenizer and of vocabulary training."""

from pydantic import Field

from bertkit.base.settings import Settings


class TokenizerSettings(Settings):
    """How text is normalized before it is cut into pieces; stored with the vocabulary.

    The three are independent. BERT's own pairs are all true ("uncased"), and lower-casing and
    accent stripping both false ("cased").
    """

    lowercase: bool = Field(True, description="Turn capital letters into small ones.")
    strip_accents: bool = Field(
        True, description="Drop combining marks, so that é and e are the same letter."
    )
    split_cjk: bool = Field(
        True, description="Make each Chinese character (and Japanese kanji) a word of its own."
    )


MAX_ENTRIES = 1_000_000  # limit for any vocabulary
UNCASED = TokenizerSettings()
CASED = TokenizerSettings(lowercase=False, strip_accents=False)


class VocabularySettings(TokenizerSettings):
    """What a vocabulary is trained to be."""

    vocab_size: int = Field(
        30_522,
        ge=6,
        le=MAX_ENTRIES,
        description="Entries to end with, special tokens included.",
    )
    min_frequency: int = Field(
        2, ge=1, description="Occurrences that two pieces must have together to become one entry."
    )
    alphabet_limit: int = Field(
        1000,
        ge=1,
        description="Distinct characters to keep, most frequent first; others are [UNK].",
    )
    max_distinct_words: int = Field(
        1_000_000,
        ge=2,
        description="Distinct words to count at a time, up to 1 kB each; beyond, the rarest are"
        " forgotten.",
    )

    def tokenizer_settings(self) -> TokenizerSettings:
        """Return the part that is stored with the vocabulary."""
        return TokenizerSettings(
            lowercase=self.lowercase, strip_accents=self.strip_accents, split_cjk=self.split_cjk
        )
