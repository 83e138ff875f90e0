"""What many pipelines share."""

import pytest

from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.heads import BertForPreTraining


@pytest.fixture(scope="session")
def loaded(small_folder):
    """A BERT with its heads for pre-training."""
    return LoadedModel.load(BertForPreTraining, small_folder, "cpu")
