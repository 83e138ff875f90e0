"""A Base-sized checkpoint in each format: hidden states are those of transformers."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from tests.bundles import to_variables, write_bundle
from tests.closeness import assert_close
from tests.parity.agreement import random_batch, randomize

from bertkit.models.bert.encoder import BertModel

LENGTHS = [5, 48, 31]


@pytest.fixture(scope="module")
def theirs():
    model = transformers.BertModel(transformers.BertConfig()).eval()
    randomize(model, standard_deviation=0.02)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("LayerNorm.weight"):
                parameter += 1.0
    return model


def write_safetensors(model: transformers.BertModel, folder: Path) -> None:
    model.save_pretrained(folder)


def write_shards(model: transformers.BertModel, folder: Path) -> None:
    model.save_pretrained(folder, max_shard_size="100MB")
    assert len(list(folder.glob("*.safetensors"))) > 3


def write_bin(model: transformers.BertModel, folder: Path) -> None:
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def write_tensorflow(model: transformers.BertModel, folder: Path) -> None:
    content = {key: value for key, value in model.config.to_dict().items() if key != "model_type"}
    (folder / "bert_config.json").write_text(json.dumps(content))
    state = {f"bert.{name}": tensor for name, tensor in model.state_dict().items()}
    write_bundle(folder, to_variables(state))


OTHERS = [write_shards, write_bin, write_tensorflow]


@pytest.mark.parametrize(
    "write",
    [write_safetensors, *(pytest.param(write, marks=pytest.mark.exhaustive) for write in OTHERS)],
)
def test_hidden_states_agree(theirs, emptied, write):
    write(theirs, emptied)
    ours = BertModel.from_pretrained(emptied)
    ids, segments, mask = random_batch(LENGTHS)
    with torch.no_grad():
        expected = theirs(input_ids=ids, token_type_ids=segments, attention_mask=mask)
        found = ours(ids, segments, mask)
    real = mask.bool()
    assert_close(found.last_hidden_state[real], expected.last_hidden_state[real])
    assert_close(found.pooler_output, expected.pooler_output)
