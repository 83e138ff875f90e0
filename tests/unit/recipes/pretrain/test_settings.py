"""What follows from what of a pre-training run's settings."""

import pytest
from pydantic import ValidationError

from bertkit.base.settings import validate
from bertkit.cli.main import main
from bertkit.recipes.pretrain.settings import PretrainSettings


def test_a_model_has_its_tuned_values_and_a_source_those_of_any_other_model():
    def choose(**values):
        settings = PretrainSettings(**values)
        return settings.size, settings.learning_rate, settings.batch_size

    assert choose() == ("mini", 2e-3, 8)
    assert choose(size="tiny") == ("tiny", 3e-3, 16)
    assert choose(size="base") == ("base", 2e-3, 32)
    assert choose(recipe="paper") == ("mini", 1e-3, 32)
    assert choose(recipe="paper", size="tiny") == ("tiny", 1e-3, 16)
    assert choose(recipe="paper", size="base") == ("base", 1e-4, 32)
    assert choose(model="model") == (None, 1e-4, 32)
    assert choose(model="model", learning_rate=5e-5) == (None, 5e-5, 32)


def test_a_recipe_gives_defaults_to_new_models_and_any_can_be_given_alone():
    def choose(**values):
        settings = PretrainSettings(**values)
        names = ("recipe", "objective", "initialization", "dropout", "mask_rate", "optimizer")
        return tuple(getattr(settings, name) for name in names)

    modern = ("modern", "mlm", "neighbors", 0.0, 0.4, "muon")
    paper = ("paper", "bert", "random", 0.1, 0.15, "adamw")
    assert choose() == choose(recipe="modern") == modern
    assert choose(recipe="paper") == choose(model="model") == paper
    assert choose(recipe="paper", initialization="neighbors") == (
        *paper[:2],
        modern[2],
        *paper[3:],
    )
    assert choose(dropout=0.2) == (*modern[:3], 0.2, *modern[4:])
    assert choose(objective="bert") == (modern[0], "bert", *modern[2:])
    assert choose(objective="causal").count(0.15) == 1  # nothing is masked


@pytest.mark.parametrize(
    "settings", [PretrainSettings(), PretrainSettings(model="a", revision="b", steps=3)]
)
def test_what_was_stored_can_be_read_again(settings):
    stored = settings.model_dump(mode="json")
    assert validate(PretrainSettings, stored, "a dump") == settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": "mini", "model": "model"}, "give either `size`, for a new model, or `model`"),
        ({"size": None}, "give either `size`, for a new model, or `model`"),
        ({"revision": "main"}, "give `model` too"),
        ({"model": "model", "recipe": "modern"}, "are for new models"),
        ({"model": "model", "initialization": "neighbors"}, "are for new models"),
        (
            {"max_length": 128, "long_length": 128},
            "`long_length` .128. must be more than `max_length`",
        ),
        ({"recipe": "best"}, "'modern' or 'paper'"),
    ],
)
def test_what_contradicts_itself_is_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        PretrainSettings(**values)


def test_long_examples_need_no_more_memory():
    settings = PretrainSettings(batch_size=32, accumulate=2, max_length=96, long_length=512)
    assert (settings.as_long().max_length, settings.as_long().accumulate) == (512, 12)
    many = PretrainSettings(batch_size=8, accumulate=4, max_length=96, long_length=512)
    assert many.as_long().accumulate == 8


def test_help_shows_what_a_new_model_gets(capsys):
    assert main(["pretrain", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    for name, values in (
        ("objective CHOICE", "mlm (modern), bert (paper)"),
        ("mask-rate FLOAT", "0.4 (modern), 0.15 (paper)"),
    ):
        text = shown[shown.index(f"--{name} ") :]
        assert text[text.index("[default: ") :].startswith(f"[default: {values}]")
    assert "0.0001]" not in shown  # the paper's learning rate


def test_other_architectures_predict_masked_words_alone():
    def choose(**values):
        settings = PretrainSettings(**values)
        return settings.objective, settings.initialization, settings.mask_rate

    assert choose(architecture="modernbert") == ("mlm", "random", 0.4)
    assert choose(architecture="roberta") == ("mlm", "neighbors", 0.4)
    assert choose(architecture="modernbert", recipe="paper") == ("mlm", "random", 0.15)
    with pytest.raises(ValidationError, match="`architecture` is for new models"):
        PretrainSettings(architecture="roberta", model="a")
