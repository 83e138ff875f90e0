"""What contradicts an objective, and what a stored one says."""

import pytest
from pydantic import ValidationError

from bertkit.objectives.settings import ObjectiveSettings


def test_only_another_objective_than_berts_is_stored():
    assert "objective" not in ObjectiveSettings().model_dump(mode="json")
    stored = ObjectiveSettings(objective="causal").model_dump(mode="json")
    assert stored["objective"] == "causal"
    assert ObjectiveSettings(**stored).objective == "causal"


@pytest.mark.parametrize("change", [{"mask_rate": 0.3}, {"whole_words": True}])
def test_masking_without_masks_is_refused(change):
    (name,) = change
    assert ObjectiveSettings(objective="mlm", **change).objective == "mlm"
    with pytest.raises(ValidationError, match=f"{name} is about masking"):
        ObjectiveSettings(objective="causal", **change)


def test_another_name_is_refused():
    with pytest.raises(ValidationError, match="'bert', 'mlm' or 'causal'"):
        ObjectiveSettings(objective="nsp")
