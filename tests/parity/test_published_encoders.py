"""The encoders that bertkit says it loads, built from their published configs, without weights."""

import pytest
import torch
import transformers
from tests.published_encoders import PUBLISHED

# Authors round, and some count no biases or positions: 278 million of XLM-R are "270M".
LARGEST_ROUNDING = 0.04
every_encoder = pytest.mark.parametrize("encoder", PUBLISHED, ids=lambda encoder: encoder.name)


@every_encoder
def test_counts_are_those_of_transformers_and_of_the_papers(encoder):
    config = transformers.AutoConfig.for_model(**encoder.config)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == encoder.num_parameters
    published = encoder.published_millions * 1e6
    assert abs(count - published) <= LARGEST_ROUNDING * published
