"""What follows from what of a pre-training run's settings."""

import pytest
from pydantic import ValidationError

from bertkit.base.settings import validate
from bertkit.recipes.pretrain.settings import PretrainSettings


def test_a_model_has_its_tuned_values_and_a_source_those_of_any_other_model():
    tuned, other = PretrainSettings(), PretrainSettings(start_from="model")
    assert (tuned.model, tuned.learning_rate, tuned.batch_size) == ("mini", 1e-3, 32)
    assert (other.model, other.learning_rate, other.batch_size) == (None, 1e-4, 32)
    assert PretrainSettings(model="tiny").batch_size == 16
    assert PretrainSettings(start_from="model", learning_rate=5e-5).learning_rate == 5e-5


def test_a_recipe_gives_defaults_to_new_models_and_any_can_be_given_alone():
    def choose(**values):
        settings = PretrainSettings(**values)
        return settings.recipe, settings.initialization, settings.dropout

    assert choose() == choose(recipe="modern") == ("modern", "neighbors", 0.0)
    assert choose(recipe="paper") == ("paper", "random", 0.1)
    assert choose(recipe="paper", initialization="neighbors") == ("paper", "neighbors", 0.1)
    assert choose(dropout=0.2) == ("modern", "neighbors", 0.2)
    assert choose(start_from="model") == ("paper", "random", 0.1)
    assert choose(start_from="model", recipe="modern") == ("modern", "random", 0.0)


@pytest.mark.parametrize(
    "settings", [PretrainSettings(), PretrainSettings(start_from="a", from_revision="b", steps=3)]
)
def test_what_was_stored_can_be_read_again(settings):
    stored = settings.model_dump(mode="json")
    assert validate(PretrainSettings, stored, "a dump") == settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "mini", "start_from": "model"}, "give either a model or start_from"),
        ({"model": None}, "give either a model or start_from"),
        ({"from_revision": "main"}, "need start_from"),
        ({"new_heads": True}, "need start_from"),
        ({"start_from": "model", "initialization": "neighbors"}, "are for new models"),
        ({"start_from": "model", "initializer_range": 0.1}, "are for new models"),
        ({"recipe": "best"}, "'modern' or 'paper'"),
    ],
)
def test_what_contradicts_itself_is_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        PretrainSettings(**values)
