"""The vocabulary of a new model: its size decides how many characters it may have."""

import pytest

from bertkit.base.errors import SettingsError
from bertkit.recipes.seq2seq import initial_model as beginning
from bertkit.recipes.seq2seq.initial_model import train_tokenizer
from bertkit.recipes.seq2seq.settings import TranslateSettings

HAN = [chr(0x4E00 + number) for number in range(1800)]
LATIN = ["Ein Hund läuft über die Straße; das „Kind“ ruft.", "A dog runs across the street."]


@pytest.mark.parametrize(("vocab_size", "num_letters"), [(2000, 1000), (6000, 1500), (8000, 1800)])
def test_a_larger_vocabulary_has_more_characters(vocab_size, num_letters):
    settings = TranslateSettings(vocab_size=vocab_size)
    tokenizer = train_tokenizer([[" ".join(HAN)], []], settings)
    assert sum(letter in tokenizer.vocabulary for letter in HAN) == num_letters


def test_a_vocabulary_of_few_characters_is_as_it_would_be_with_fewer_allowed(monkeypatch):
    found = [train_tokenizer([LATIN * 3, []], TranslateSettings()).vocabulary]
    monkeypatch.setattr(beginning, "ENTRIES_A_LETTER", 6)
    found.append(train_tokenizer([LATIN * 3, []], TranslateSettings()).vocabulary)
    assert found[0] == found[1]


def test_more_characters_than_entries_are_refused_without_a_flag_that_is_not_there():
    with pytest.raises(SettingsError, match=r"at least 1005, or keep fewer characters$"):
        train_tokenizer([[" ".join(HAN)], []], TranslateSettings(vocab_size=500))
