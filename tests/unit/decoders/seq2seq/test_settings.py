import pytest
from pydantic import ValidationError

from bertkit.decoders.seq2seq.settings import TranslateSettings


def test_take_warm_defaults_unless_it_is_told_otherwise():
    warm = TranslateSettings(model="M")
    assert (warm.learning_rate, warm.dropout) == (1e-4, 0.1)
    assert TranslateSettings(model="M", dropout=0.2).dropout == 0.2
    assert TranslateSettings().learning_rate == 1e-3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "M", "size": "3x64"}, "`size`: that is for a new model"),
        ({"model": "M", "vocab_size": 100, "size": "tiny"}, "`size` and `vocab_size`"),
        ({"revision": "main"}, "`revision` needs `model`"),
        ({"epochs": 3, "minutes": 1}, "give one budget, not `epochs` and `minutes`"),
        ({"steps": 3, "minutes": 1}, "give one budget"),
        ({"vocab_size": 63}, "vocab_size"),
        ({"tokens_per_batch": 1}, "tokens_per_batch"),
        ({"max_length": 5000}, "max_length"),
        ({"mdoel": "M"}, "mdoel"),
    ],
)
def test_what_contradicts_itself_is_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        TranslateSettings(**values)
