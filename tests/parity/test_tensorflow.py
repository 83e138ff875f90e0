"""A checkpoint that TensorFlow wrote computes here, and in transformers, what it computed there."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.closeness import assert_close

from bertkit.models.bert.heads import BertForPreTraining

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tensorflow"
OUTPUTS = ("prediction_logits", "seq_relationship_logits")


@pytest.fixture(scope="module")
def arrays():
    with np.load(GOLDEN / "expected.npz", allow_pickle=False) as file:
        return {name: torch.from_numpy(file[name]) for name in file.files}


def test_our_outputs_are_tensorflows(arrays):
    model = BertForPreTraining.from_pretrained(GOLDEN)
    ids, segments = arrays["inputs/input_ids"].long(), arrays["inputs/token_type_ids"].long()
    output = model(ids, token_type_ids=segments)
    for name in OUTPUTS:
        assert_close(getattr(output, name), arrays[f"outputs/{name}"])
