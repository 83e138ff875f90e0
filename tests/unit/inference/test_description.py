"""A description counts what the weights' file holds, and says so where it can't."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.inference.small import build_model, save_small

from bertkit.base.errors import CheckpointError, MissingFileError
from bertkit.inference.description import describe
from bertkit.models.bert.encoder import BertModel

BACKBONE = ["encoder.embeddings", "encoder.layers", "pooler"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_small(tmp_path)
    return tmp_path


def rewrite_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_all_parts_are_counted_with_and_without_weights(folder):
    description = describe(folder)
    assert [*description.parameters] == [*BACKBONE, "masked_lm", "next_sentence"]
    assert description.num_parameters == count(build_model())
    (folder / "model.safetensors").unlink()
    assert describe(folder) == description


def test_a_bare_backbone(folder):
    backbone = BertModel.from_pretrained(folder)
    backbone.save_pretrained(folder)
    description = describe(folder)
    assert description.architecture == "BertModel"
    assert [*description.parameters] == BACKBONE
    assert description.num_parameters == count(backbone)


def test_a_foreign_head_is_counted_and_what_is_no_weight_of_its_own_is_not(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    without_heads = {name: t for name, t in tensors.items() if "pooler" not in name}
    copied = tensors["bert.embeddings.word_embeddings.weight"].clone()
    save_file(
        {
            **without_heads,
            "cls.predictions.decoder.weight": copied,
            "bert.embeddings.position_ids": torch.arange(24)[None],
            "qa_outputs.weight": torch.zeros(2, 8),
        },
        path,
    )
    rewrite_config(folder, architectures=["BertForMaskedLM"])
    description = describe(folder)
    assert description.architecture == "BertForMaskedLM"
    assert "pooler" not in description.parameters
    assert description.parameters["qa_outputs"] == 16
    assert description.num_parameters == count(build_model()) - (8 * 8 + 8) + 16


def test_a_foreign_architecture_without_weights_is_not_guessed(folder):
    (folder / "model.safetensors").unlink()
    rewrite_config(folder, architectures=["BertForMaskedLM"])
    with pytest.raises(MissingFileError, match=r"model\.safetensors.* BertForMaskedLM"):
        describe(folder)


@pytest.mark.parametrize("value", [5, "BertForPreTraining", [5], {"a": 1}])
def test_architectures_must_be_a_list_of_names(folder, value):
    rewrite_config(folder, architectures=value)
    with pytest.raises(CheckpointError, match="architectures must be a list of names"):
        describe(folder)


@pytest.mark.parametrize("value", [None, []])
def test_without_a_name_it_is_a_backbone(folder, value):
    rewrite_config(folder, architectures=value)
    assert describe(folder).architecture == "BertModel"
