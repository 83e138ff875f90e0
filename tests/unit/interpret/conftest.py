"""A model that all views show."""

import pytest

from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.views.view import ViewInputs


@pytest.fixture(scope="session")
def inspected(small_folder):
    """A BERT for pre-training, `small`."""
    return InspectedModel.load(small_folder)


@pytest.fixture(scope="session")
def inputs(inspected):
    """A pair of texts as it saw them."""
    return ViewInputs(inspected, inspected.observe(inspected.read("the cats saw", "a hat")))
