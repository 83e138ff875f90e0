import pytest

from bertkit.base.errors import SettingsError
from bertkit.base.settings import validate
from bertkit.recipes.finetune.settings import FineTuneSettings


@pytest.mark.parametrize("value", ["head", "-1", "1.5", "", "٣"])
def test_what_cant_be_frozen(value):
    with pytest.raises(SettingsError, match="freeze must be none, embeddings, encoder"):
        validate(FineTuneSettings, {"freeze": value}, "here")


@pytest.mark.parametrize("odd", [{"layer_decay": 0}, {"layer_decay": 1.1}, {"dropout": 1}])
def test_rates_have_bounds(odd):
    with pytest.raises(SettingsError):
        validate(FineTuneSettings, odd, "here")
