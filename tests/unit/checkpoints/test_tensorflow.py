"""google's folders: names, turned kernels, and what a folder may hold."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.bundles import PREFIX, to_variables, write_bundle

from bertkit.base.errors import CheckpointError, MissingFileError
from bertkit.checkpoints.formats import FORMATS, open_checkpoint
from bertkit.checkpoints.leveldb_table import read_table
from bertkit.checkpoints.names import BERT_NAMES
from bertkit.checkpoints.tensorflow import (
    LAYER_NAMES,
    TENSORFLOW_NAMES,
    find_name,
    is_tensorflow,
    open_tensorflow,
    rename_variables,
)
from bertkit.checkpoints.torch_tensors import lazy_tensor, read_tensor

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tensorflow"
QUERY = "bert/encoder/layer_11/attention/self/query/kernel"


@pytest.fixture
def folder(tmp_path):
    """A copy of the golden folder."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "uncased"))


def test_the_tables_can_be_read_both_ways_and_have_every_name_of_every_head():
    of_layers = [f"bert.encoder.layer.{{layer}}.{name}" for name in LAYER_NAMES.values()]
    theirs = [*TENSORFLOW_NAMES.values(), *of_layers]
    assert len(set(theirs)) == len(theirs)
    assert set(theirs) == {name for names in BERT_NAMES.values() for name in names}


def test_variables_that_tensorflow_wrote_are_named_and_the_rest_is_dropped():
    variables = read_table(GOLDEN / f"{PREFIX}.index")
    weights = [name for name in variables if name and b"adam" not in name and b"step" not in name]
    assert len(weights) == 5 + 2 * 16 + 2 + 5 + 2
    tensors = open_tensorflow(GOLDEN).tensors
    assert len(tensors) == len(weights)
    assert not [name for name in tensors if "/" in name]


@pytest.mark.parametrize(
    ("shape", "told", "found"),
    [((3, 2), {}, 3), ((3, 2), {"num_labels": 2}, 2), ((), {}, None), (None, {}, None)],
)
def test_a_classifier_tells_its_labels_where_the_config_does_not(folder, shape, told, found):
    content = json.loads((folder / "bert_config.json").read_text(encoding="utf-8"))
    (folder / "bert_config.json").write_text(json.dumps(content | told), encoding="utf-8")
    tensors = {"bert.embeddings.word_embeddings.weight": torch.ones(4, 2)}
    if shape is not None:
        tensors["classifier.weight"] = torch.ones(shape)
    write_bundle(folder, to_variables(tensors))
    assert open_tensorflow(folder).config.get("num_labels") == found


def test_kernels_are_turned_and_nothing_else(folder):
    tensors = {
        "bert.encoder.layer.1.intermediate.dense.weight": torch.arange(6.0).reshape(3, 2),
        "bert.embeddings.word_embeddings.weight": torch.arange(8.0).reshape(4, 2),
        "cls.seq_relationship.weight": torch.arange(4.0).reshape(2, 2),
        "classifier.weight": torch.arange(6.0).reshape(3, 2),
        "qa_outputs.bias": torch.arange(2.0),
    }
    variables = to_variables(tensors)
    assert variables["bert/encoder/layer_1/intermediate/dense/kernel"].tolist() == [
        [0.0, 2.0, 4.0],
        [1.0, 3.0, 5.0],
    ]
    assert torch.equal(variables["output_weights"], tensors["classifier.weight"])
    write_bundle(folder, variables)
    found = open_tensorflow(folder).tensors
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].shape == tensor.shape
        assert torch.equal(read_tensor(found[name]), tensor)
        assert found[name].read().flags.c_contiguous


def test_layers_are_counted_and_what_is_unknown_keeps_its_name():
    assert find_name(QUERY) == "bert.encoder.layer.11.attention.self.query.weight"
    strangers = [
        QUERY.replace("11", "011"),
        QUERY.replace("11", "-1"),
        QUERY.replace("11", "१"),
        QUERY.replace("11", "10000"),
        QUERY.replace("11", "{layer}"),
        QUERY + "/more",
        "module/" + QUERY,
        "bert/encoder/layer_0/attention",
        "loss_scale",
    ]
    for name in strangers:
        assert find_name(name) is None
        assert list(rename_variables({name: lazy_tensor(torch.zeros(2, 2))})) == [name]


@pytest.mark.parametrize(
    "name",
    ["global_step", "beta1_power", "beta2_power"]
    + [f"{QUERY}/{slot}" for slot in ("adam_m", "adam_v", "Adam", "Adam_1")],
)
def test_the_state_of_training_is_dropped(name):
    assert rename_variables({name: lazy_tensor(torch.zeros(2))}) == {}


def test_the_config_is_kept_with_what_bertkit_does_not_know(folder):
    config = open_tensorflow(folder).config
    theirs = json.loads((GOLDEN / "bert_config.json").read_text())
    assert config == {"model_type": "bert", **theirs}
    assert config["directionality"] == "bidi"
    (folder / "bert_config.json").write_text('{"model_type": "albert"}')
    assert open_tensorflow(folder).config == {"model_type": "albert"}


def test_the_common_beginning_of_the_files_is_a_path_too(folder):
    for path in (folder, folder / PREFIX):
        checkpoint = open_checkpoint(path)
        assert (checkpoint.format, checkpoint.folder) == ("tensorflow", folder)
        assert [file.name for file in checkpoint.files] == [
            "bert_config.json",
            f"{PREFIX}.index",
            f"{PREFIX}.data-00000-of-00001",
        ]
    assert checkpoint.format in FORMATS


def test_of_several_checkpoints_one_must_be_named(folder):
    for suffix in (".index", ".data-00000-of-00001"):
        shutil.copy(folder / f"{PREFIX}{suffix}", folder / f"model.ckpt-1000{suffix}")
    with pytest.raises(
        CheckpointError, match=r"2 checkpoints: bert_model.ckpt, model.ckpt-1000; n"
    ):
        open_tensorflow(folder)
    assert len(open_tensorflow(folder / "model.ckpt-1000").tensors) == 46


def test_the_first_version_is_refused_by_name(folder):
    (folder / f"{PREFIX}.index").rename(folder / PREFIX)
    for path in (folder, folder / PREFIX):
        assert is_tensorflow(path)
        with pytest.raises(CheckpointError, match="first version of TensorFlow's format"):
            open_tensorflow(path)


def test_a_folder_is_known_by_its_config_or_its_index(folder):
    (folder / "bert_config.json").unlink()
    assert is_tensorflow(folder)
    with pytest.raises(MissingFileError, match=r"bert_config\.json doesn't exist"):
        open_tensorflow(folder)
    (folder / f"{PREFIX}.index").unlink()
    assert not is_tensorflow(folder)
    assert not is_tensorflow(folder / PREFIX)
    assert not is_tensorflow(folder / "nowhere")
    (folder / "bert_config.json").write_text("{}")
    assert is_tensorflow(folder)
    with pytest.raises(MissingFileError, match=r"has bert_config\.json and no checkpoint"):
        open_tensorflow(folder)
