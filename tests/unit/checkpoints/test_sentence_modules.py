import json
from pathlib import Path

import pytest
import torch
from tests.hostile.sentence_files import DENSE, LINEAR, POOLING
from tests.hostile.whole import to_json, weights_file

from bertkit.base.errors import MissingFileError
from bertkit.checkpoints.elements import ElementType
from bertkit.checkpoints.sentence_modules import (
    POOLING_FLAGS,
    Normalize,
    Pooling,
    read_dense,
    read_normalize,
    read_pooling,
    write_module,
)
from bertkit.checkpoints.torch_tensors import read_tensor

MODES = tuple(POOLING_FLAGS.values())


def put(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


def put_pooling(folder: Path, content: dict[str, object]) -> Path:
    return put(folder, "1_Pooling/config.json", to_json(content))


def put_dense(folder: Path, content: dict[str, object], weights: dict[str, torch.Tensor]) -> Path:
    put(folder, "2_Dense/config.json", to_json(content))
    return put(folder, "2_Dense/model.safetensors", weights_file(weights))


def test_old_keys_are_joined_in_the_order_of_old_versions(tmp_path):
    content = {"include_prompt": False, "word_embedding_dimension": 8}
    content |= dict.fromkeys(reversed(POOLING_FLAGS), True)
    pooling = read_pooling(put_pooling(tmp_path, content), "1_Pooling")
    assert pooling == Pooling(8, MODES, include_prompt=False)
    assert (
        *("cls", "max", "mean", "mean_sqrt_len_tokens"),
        *("weightedmean", "lasttoken"),
    ) == MODES


def test_both_kinds_of_keys_may_agree(tmp_path):
    content = {**POOLING, "embedding_dimension": 8, "pooling_mode": "mean"}
    assert read_pooling(put_pooling(tmp_path, content), "1_Pooling") == Pooling(8, ("mean",))


def test_rare_keys_are_written_only_where_they_are_needed(tmp_path):
    write_module(tmp_path, "a", Pooling(8, ("weightedmean",), include_prompt=False))
    write_module(tmp_path, "b", Pooling(8, ("mean", "cls")))
    assert json.loads((tmp_path / "a/config.json").read_text()) == {
        **POOLING,
        "pooling_mode_mean_tokens": False,
        "pooling_mode_weightedmean_tokens": True,
        "include_prompt": False,
    }
    assert json.loads((tmp_path / "b/config.json").read_text()) == {
        "embedding_dimension": 8,
        "pooling_mode": ["mean", "cls"],
    }


def test_normalize_needs_no_folder_and_writes_none(tmp_path):
    assert read_normalize(tmp_path, "3_Normalize") == Normalize()
    assert write_module(tmp_path, "3_Normalize", Normalize()) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_dense_module_keeps_the_type_of_its_weights(tmp_path):
    weights = {name: tensor.half() for name, tensor in LINEAR.items()}
    dense = read_dense(put_dense(tmp_path, DENSE, weights), "2_Dense")
    write_module(tmp_path, "new", dense)
    assert read_dense(tmp_path, "new").weight.dtype is ElementType.F16


def test_a_dense_module_without_an_activation_has_the_default_of_sentence_transformers(tmp_path):
    content = {key: DENSE[key] for key in ("in_features", "out_features")}
    assert read_dense(put_dense(tmp_path, content, LINEAR), "2_Dense").activation == "tanh"


def test_weights_of_torch_are_read_too(tmp_path):
    put(tmp_path, "2_Dense/config.json", to_json(DENSE))
    torch.save(LINEAR, tmp_path / "2_Dense" / "pytorch_model.bin")
    put(tmp_path, "2_Dense/model.safetensors.index.json", b"stray")
    dense = read_dense(tmp_path, "2_Dense")
    assert dense.bias is not None
    assert read_tensor(dense.bias).equal(LINEAR["linear.bias"])


def test_a_module_has_no_shards(tmp_path):
    put_dense(tmp_path, DENSE, LINEAR)
    (tmp_path / "2_Dense" / "model.safetensors").rename(tmp_path / "2_Dense" / "part.safetensors")
    places = {"weight_map": dict.fromkeys(LINEAR, "part.safetensors")}
    put(tmp_path, "2_Dense/model.safetensors.index.json", to_json(places))
    with pytest.raises(
        MissingFileError, match=r"has no model\.safetensors .*a Dense module has one"
    ):
        read_dense(tmp_path, "2_Dense")
