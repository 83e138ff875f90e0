"""What contradicts an objective."""

import pytest
from pydantic import ValidationError

from bertkit.tasks.objectives.settings import ObjectiveSettings


@pytest.mark.parametrize("change", [{"mask_rate": 0.3}, {"whole_words": True}])
def test_masking_without_masks_is_refused(change):
    (name,) = change
    assert ObjectiveSettings(objective="mlm", **change).objective == "mlm"
    with pytest.raises(ValidationError, match=f"{name} is about masking"):
        ObjectiveSettings(objective="causal", **change)


def test_another_name_is_refused():
    with pytest.raises(ValidationError, match="'bert', 'mlm' or 'causal'"):
        ObjectiveSettings(objective="nsp")
