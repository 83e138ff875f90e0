"""The table of architectures tells what the model classes are."""

import numpy as np
import pytest
from tests.families import FAMILIES, make_folder

import bertkit
from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.names import HEADS
from bertkit.checkpoints.transfer import FEATURE_BASED
from bertkit.models.bert.architectures import (
    ARCHITECTURES,
    CAUSAL,
    expected_shapes,
    find_architecture,
    has_class,
)
from bertkit.models.bert.config import ACTIVATIONS, BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.open_model import OpenModel
from bertkit.nn.block import ACTIVATIONS as FUNCTIONS

CONFIG = BertConfig(
    hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=4, vocab_size=9
)
FAMILY_TYPES = {"electra-wide": "electra"}  # `model_type`, where it isn't the name
PUBLIC = [name for name in bertkit.__all__ if name.startswith("BertFor") or name == "BertModel"]


def find(name: str | None, *heads: str) -> str:
    return find_architecture({} if name is None else {"architectures": [name]}, heads, "here")


def test_the_table_has_the_models_that_there_are():
    assert sorted(ARCHITECTURES) == sorted([*PUBLIC, CAUSAL, FEATURE_BASED])


@pytest.mark.parametrize("name", PUBLIC)
def test_shapes_are_those_of_the_model(name):
    num_labels = 2 if name == "BertForQuestionAnswering" else 3
    config = CONFIG.model_validate({**CONFIG.to_dict(), "num_labels": num_labels})
    model = getattr(bertkit, name)(config)
    heads = [
        head for head in HEADS if head in ARCHITECTURES[name].heads or getattr(model, head, None)
    ]
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


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_table_entry_is_the_class_of_its_name(name):
    assert ARCHITECTURES[name].kind.__name__ == name


def test_the_names_of_activations_are_those_of_torchs_functions():
    assert list(ACTIVATIONS) == list(FUNCTIONS)


@pytest.mark.parametrize("scores", ["sequence", "token", "choice"])
@pytest.mark.parametrize("layers", ["last", "last_four"])
def test_shapes_of_a_feature_head_are_those_of_the_model(layers, scores):
    head = {"layers": layers, "scores": scores}
    changes = {"num_labels": 3, "feature_head": head, "num_hidden_layers": 4}
    config = CONFIG.model_validate({**CONFIG.to_dict(), **changes})
    assert expected_shapes(config, FEATURE_BASED, ["classifier"]) == {
        key: tuple(tensor.shape) for key, tensor in BertFeatureBased(config).state_dict().items()
    }


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_arrays_are_the_weights_that_the_class_loads(name, tmp_path):
    """For each class, from the checkpoint of one that has its heads."""
    changes = {"num_labels": 2, "is_decoder": name == CAUSAL}
    if name == FEATURE_BASED:
        changes["feature_head"] = {"layers": "last", "scores": "sequence"}
    kind = ARCHITECTURES[name].kind
    kind(CONFIG.model_validate({**CONFIG.to_dict(), **changes})).save_pretrained(tmp_path)
    opened = OpenModel.open(tmp_path)
    arrays, states = opened.read_arrays(name), kind.from_pretrained(opened).state_dict()
    assert opened.architecture == name
    assert sorted(arrays) == sorted(states)
    assert all(np.array_equal(array, states[key]) for key, array in arrays.items())


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("BertForMaskedLM", {}, "has no masked_lm head, which BertForMaskedLM needs"),
        ("BertModel", {"is_decoder": True}, "BertModel is bidirectional"),
        ("BertForQuestionAnswering", {"num_labels": 3}, "num_labels .3. must be 2"),
        (CAUSAL, {}, "its config needs is_decoder=True"),
        ("BertModel", {"hidden_size": 16}, "must be .9, 16."),
    ],
)
def test_arrays_of_another_class_are_refused_as_the_class_refuses_them(
    name, changes, message, tmp_path
):
    BertModel(CONFIG).save_pretrained(tmp_path)
    opened = OpenModel.open(tmp_path).change(**changes)
    with pytest.raises(CheckpointError, match=message) as refusal:
        opened.read_arrays(name)
    with pytest.raises(CheckpointError) as other:
        ARCHITECTURES[name].kind.from_pretrained(opened)
    assert str(refusal.value) == str(other.value)


def test_a_class_whose_head_a_family_lacks_is_refused(tmp_path):
    folder = make_folder(tmp_path, "roberta", "ForMaskedLM", with_tokenizer=False)
    with pytest.raises(CheckpointError, match="is RoBERTa, which has no BertForPreTraining; load"):
        bertkit.BertForPreTraining.from_pretrained(folder)
    with pytest.raises(CheckpointError, match="which has no BertForNextSentencePrediction"):
        OpenModel.open(folder).read_arrays("BertForNextSentencePrediction")


@pytest.mark.parametrize("family", FAMILIES)
def test_no_head_of_a_file_makes_a_class_that_its_family_lacks(family):
    kind = FAMILY_TYPES.get(family, family)
    found = find_architecture({"model_type": kind}, HEADS, "here")
    assert has_class(find_family({"model_type": kind}).names, found)
    assert (found == "BertForPreTraining") == (kind == "bert")
