"""The table of architectures tells what the model classes are."""

import pytest

import bertkit
from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.names import HEADS
from bertkit.models.bert.config import BertConfig
from bertkit.models.open_model import (
    ARCHITECTURES,
    FEATURE_BASED,
    expected_shapes,
    find_architecture,
)

CONFIG = BertConfig(
    hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=4, vocab_size=9
)
PUBLIC = [name for name in bertkit.__all__ if name.startswith("BertFor") or name == "BertModel"]
CAUSAL = "BertLMHeadModel"  # known by its config's is_decoder, and by name


def find(name: str | None, *heads: str) -> str:
    return find_architecture({} if name is None else {"architectures": [name]}, heads, "here")


def test_the_table_has_the_models_that_there_are():
    assert sorted(ARCHITECTURES) == sorted([*PUBLIC, CAUSAL, FEATURE_BASED])


@pytest.mark.parametrize("name", PUBLIC)
def test_shapes_are_those_of_the_model(name):
    num_labels = 2 if name == "BertForQuestionAnswering" else 3
    config = CONFIG.model_validate({**CONFIG.to_dict(), "num_labels": num_labels})
    model = getattr(bertkit, name)(config)
    heads = [head for head in HEADS if head in ARCHITECTURES[name].heads or hasattr(model, head)]
    assert ARCHITECTURES[name].heads <= set(heads)
    assert expected_shapes(config, name, heads) == {
        key: tuple(tensor.shape) for key, tensor in model.state_dict().items()
    }
    assert find(name, *heads) == name


@pytest.mark.parametrize(
    ("name", "heads", "found"),
    [
        (None, (), "BertModel"),
        (None, ("pooler",), "BertModel"),
        (None, ("pooler", "masked_lm", "next_sentence"), "BertForPreTraining"),
        (None, ("pooler", "masked_lm"), "BertForMaskedLM"),
        (None, ("pooler", "classifier"), "BertForSequenceClassification"),
        (None, ("classifier",), "BertForTokenClassification"),
        (None, ("qa_outputs",), "BertForQuestionAnswering"),
        ("BertForMultipleChoice", ("pooler", "classifier"), "BertForMultipleChoice"),
        ("BertForMaskedLM", ("pooler", "masked_lm", "next_sentence"), "BertForMaskedLM"),
        ("BertForMaskedLM", ("pooler",), "BertModel"),
        ("BertModel", ("masked_lm",), "BertModel"),
        (FEATURE_BASED, ("classifier",), FEATURE_BASED),
        (FEATURE_BASED, ("qa_outputs",), "BertForQuestionAnswering"),
        ("SomethingElse", ("masked_lm",), "BertForMaskedLM"),
    ],
)
def test_a_name_is_kept_where_the_heads_fit_it(name, heads, found):
    assert find(name, *heads) == found


@pytest.mark.parametrize(
    ("name", "is_decoder", "heads", "found"),
    [
        (None, True, ("masked_lm",), CAUSAL),
        (CAUSAL, True, ("masked_lm",), CAUSAL),
        ("BertForMaskedLM", True, ("masked_lm",), CAUSAL),
        ("BertForPreTraining", True, ("pooler", "masked_lm", "next_sentence"), CAUSAL),
        (None, True, ("pooler", "classifier"), "BertForSequenceClassification"),
        (None, True, ("pooler", "next_sentence"), "BertModel"),
        (CAUSAL, False, ("masked_lm",), "BertForMaskedLM"),
        (CAUSAL, None, ("masked_lm",), "BertForMaskedLM"),
    ],
)
def test_the_direction_decides_what_a_head_for_words_is(name, is_decoder, heads, found):
    config = {"is_decoder": is_decoder} | ({} if name is None else {"architectures": [name]})
    assert find_architecture(config, heads, "here") == found


@pytest.mark.parametrize("names", ["BertModel", [5], {"a": "b"}])
def test_names_that_are_no_list_are_refused(names):
    with pytest.raises(CheckpointError, match="must be a list of names"):
        find_architecture({"architectures": names}, (), "here")
