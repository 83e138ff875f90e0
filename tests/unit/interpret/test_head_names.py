import pytest

from bertkit.base.errors import SettingsError
from bertkit.interpret.ablation import HeadName, parse_heads
from bertkit.models.bert.config import BertConfig

CONFIG = BertConfig(hidden_size=8, num_hidden_layers=6, num_attention_heads=4, intermediate_size=8)


def test_names_are_layer_and_head_from_1():
    assert parse_heads("5.3, 5.4,5.3,", CONFIG) == [HeadName(5, 3), HeadName(5, 4)]
    assert str(HeadName(5, 3)) == "5.3"


@pytest.mark.parametrize("text", ["", " , "])
def test_none_is_refused(text):
    with pytest.raises(SettingsError, match="at least one head"):
        parse_heads(text, CONFIG)


@pytest.mark.parametrize("text", ["5", "5.", "a.b", "5.3.1", "-1.2", "٥.٣", "5,3.4"])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(SettingsError, match=r"expected heads such as 5\.3,5\.4"):
        parse_heads(text, CONFIG)


@pytest.mark.parametrize("text", ["0.1", "7.1", "1.5", "1.0"])
def test_a_head_that_is_not_there_is_refused(text):
    with pytest.raises(SettingsError, match="layers 1 to 6, each with heads 1 to 4"):
        parse_heads(text, CONFIG)
