"""Families of encoders: those that are read, and what is said of all others."""

import re

import pytest
from tests.published_encoders import PUBLISHED

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.families import ENGLISH, FAMILIES, MULTILINGUAL, OTHERS, check_family


def test_no_family_is_both_read_and_refused():
    assert FAMILIES.keys().isdisjoint(OTHERS)


@pytest.mark.parametrize("kind", OTHERS)
def test_another_family_is_named_with_what_to_use(kind):
    name, advice = OTHERS[kind]
    with pytest.raises(CheckpointError) as caught:
        check_family({"model_type": kind}, "m/")
    assert str(caught.value) == f"m/ is {name}, which bertkit doesn't have; {advice}"


@pytest.mark.parametrize("kind", FAMILIES)
def test_code_of_a_models_own_is_refused(kind):
    check_family({"model_type": kind, "auto_map": {}}, "m/")
    with pytest.raises(CheckpointError, match=f"m/ is {FAMILIES[kind].title} with code of its own"):
        check_family({"model_type": kind, "auto_map": {"AutoModel": "modeling.Model"}}, "m/")


def test_what_is_advised_loads():
    advised = {*re.findall(r"[\w-]+/[\w.-]+", f"{ENGLISH} {MULTILINGUAL}")}
    assert len(advised) == 6
    assert advised <= {encoder.name for encoder in PUBLISHED}


@pytest.mark.parametrize("kind", FAMILIES)
def test_names_of_classes_go_there_and_back(kind):
    family = FAMILIES[kind]
    for ours in ("BertModel", "BertForMaskedLM", "BertForSequenceClassification"):
        assert family.our_class(family.their_class(ours)) == ours
    assert family.their_class("BertFeatureBased") == "BertFeatureBased"
