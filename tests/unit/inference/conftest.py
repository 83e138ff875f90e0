"""What many pipelines share."""

import pytest

from bertkit.inference.torch_model import TorchModel
from bertkit.models.bert.heads import BertForPreTraining


@pytest.fixture(scope="session")
def loaded(small_folder):
    """A BERT with its heads for pre-training."""
    return TorchModel.load(BertForPreTraining, small_folder, "cpu")
