import json
import math
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from bertkit.base.errors import CheckpointError, DamagedFileError, MissingFileError, UnsafeFileError
from bertkit.checkpoints import huggingface
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.huggingface import open_huggingface
from bertkit.checkpoints.safetensors_file import open_safetensors, read_safetensors
from bertkit.checkpoints.transfer import export_tensors, import_tensors
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.heads import BertForPreTraining

CONFIG = BertConfig(
    vocab_size=12, hidden_size=4, num_hidden_layers=2, num_attention_heads=1, intermediate_size=6
)


@pytest.fixture
def folder(tmp_path):
    BertForPreTraining(CONFIG).save_pretrained(tmp_path)
    return tmp_path


def rewrite(folder: Path, **changes: torch.Tensor | None) -> None:
    tensors = read_safetensors(folder / "model.safetensors")
    for name, tensor in changes.items():
        tensors.pop(name, None)
        if tensor is not None:
            tensors[name] = tensor
    save_file(tensors, folder / "model.safetensors")


def test_export_undoes_import(folder):
    foreign = open_huggingface(folder).tensors
    expected = {n: tuple(t.shape) for n, t in BertForPreTraining(CONFIG).state_dict().items()}
    ours = import_tensors(foreign, expected, folder)
    assert ours.keys() == expected.keys()
    again = export_tensors(ours)
    assert again.keys() == foreign.keys()
    assert all(torch.equal(again[name], foreign[name].read()) for name in foreign)


def test_one_message_lists_what_is_missing_left_over_and_misshapen(folder):
    rewrite(
        folder,
        **{
            "bert.pooler.dense.weight": None,
            "bert.pooler.dense.bias": torch.zeros(5),
            "bert.strange.weight": torch.zeros(1),
        },
    )
    with pytest.raises(CheckpointError) as caught:
        BertForPreTraining.from_pretrained(folder)
    message = str(caught.value)
    assert "missing bert.pooler.dense.weight" in message
    assert "bert.pooler.dense.bias is [5] and must be [4]" in message
    assert "unknown bert.strange.weight" in message


QUERY = "bert.encoder.layer.1.attention.self.query.weight"
KEY = QUERY.replace("query", "key")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {QUERY: torch.zeros(6, 4), KEY: torch.zeros(2, 4)},
            rf"{QUERY} is \[6, 4\].* \[4, 4\]; {KEY}",
        ),
        ({QUERY: None}, f"missing {QUERY}$"),
        ({QUERY: torch.zeros(4, 4, dtype=torch.int8)}, f"{QUERY} holds torch.int8"),
        ({QUERY: torch.full((4, 4), math.nan)}, f"{QUERY} has NaN or infinity"),
        ({QUERY: torch.full((4, 4), 1e300, dtype=torch.float64)}, f"{QUERY} has NaN or infinity"),
    ],
)
def test_what_cannot_be_a_weight_is_named(folder, changes, message):
    rewrite(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        BertForPreTraining.from_pretrained(folder)


@pytest.mark.parametrize("kind", [BertForPreTraining, BertModel])
def test_old_names_of_norms_are_read_and_new_ones_written(tmp_path, kind):
    model = kind(CONFIG)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = read_safetensors(path)
    old_ends = {"Norm.weight": "Norm.gamma", "Norm.bias": "Norm.beta"}
    save_file(
        {
            re.sub("Norm.(weight|bias)$", lambda end: old_ends[end[0]], n): t
            for n, t in tensors.items()
        },
        path,
    )
    assert any(name.endswith("LayerNorm.gamma") for name in read_safetensors(path))
    kind.from_pretrained(tmp_path).save_pretrained(tmp_path)
    again = read_safetensors(path)
    assert again.keys() == tensors.keys()
    assert all(torch.equal(again[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("is_safetensors", [True, False])
def test_weights_of_a_model_in_data_parallel_are_read(is_safetensors, folder):
    model = BertForPreTraining.from_pretrained(folder)
    tensors = read_safetensors(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    wrapped = {f"module.{name}": tensor.clone() for name, tensor in tensors.items()}
    if is_safetensors:
        save_file(wrapped, folder / "model.safetensors")
    else:
        torch.save(wrapped, folder / "pytorch_model.bin")
    read = BertForPreTraining.from_pretrained(folder).state_dict()
    assert all(torch.equal(read[name], tensor) for name, tensor in model.state_dict().items())


def test_a_norm_under_both_names_is_refused(folder):
    rewrite(folder, **{"bert.embeddings.LayerNorm.gamma": torch.ones(4)})
    with pytest.raises(
        CheckpointError, match=r"two tensors mean bert\.embeddings\.LayerNorm\.weight"
    ):
        BertForPreTraining.from_pretrained(folder)


def test_a_tied_copy_is_accepted_when_it_is_one(folder):
    word = open_huggingface(folder).tensors["bert.embeddings.word_embeddings.weight"].read()
    rewrite(folder, **{"cls.predictions.decoder.weight": word})
    BertForPreTraining.from_pretrained(folder)
    rewrite(folder, **{"cls.predictions.decoder.weight": word + 1})
    with pytest.raises(CheckpointError, match=r"decoder\.weight must equal"):
        BertForPreTraining.from_pretrained(folder)


def test_half_precision_becomes_float32(folder):
    tensors = read_safetensors(folder / "model.safetensors")
    save_file({n: t.to(torch.bfloat16) for n, t in tensors.items()}, folder / "model.safetensors")
    model = BertForPreTraining.from_pretrained(folder)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xff" * 8, "header"),
        ((100 << 20).to_bytes(8, "little") + b"{}", "header"),
        ((16).to_bytes(8, "little") + b"not json at all!", "isn't JSON"),
    ],
)
def test_a_file_that_is_not_safetensors(folder, content, message):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(DamagedFileError, match=message):
        BertForPreTraining.from_pretrained(folder)


def test_a_truncated_file(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DamagedFileError, match="isn't a whole safetensors file"):
        BertForPreTraining.from_pretrained(folder)


def test_missing_files(folder, tmp_path):
    with pytest.raises(MissingFileError, match="doesn't exist"):
        BertForPreTraining.from_pretrained(tmp_path / "nowhere")
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingFileError, match=r"model\.safetensors"):
        BertForPreTraining.from_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(MissingFileError, match="is no model folder"):
        BertForPreTraining.from_pretrained(folder)


def test_a_config_that_is_not_an_object(folder):
    (folder / "config.json").write_text(json.dumps([1]))
    with pytest.raises(DamagedFileError, match="one JSON object"):
        BertForPreTraining.from_pretrained(folder)


def test_a_file_of_a_folder_is_not_the_folder(folder):
    with pytest.raises(MissingFileError, match=r"model\.safetensors is a file; name its folder"):
        BertForPreTraining.from_pretrained(folder / "model.safetensors")


def write_index(folder: Path, places: dict[str, str]) -> None:
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def cut(folder: Path, num_shards: int) -> dict[str, str]:
    """Spread the weights over files, and say where they are."""
    tensors = read_safetensors(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"{number % num_shards}.safetensors" for number, name in enumerate(tensors)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == file}, folder / file)
    write_index(folder, places)
    return places


def test_shards_are_read_as_one(folder):
    whole = BertForPreTraining.from_pretrained(folder).state_dict()
    cut(folder, 3)
    again = BertForPreTraining.from_pretrained(folder).state_dict()
    assert all(torch.equal(again[name], whole[name]) for name in whole)


def test_an_index_of_too_much_is_refused_before_a_file_is_read(folder):
    cut(folder, 2)
    for places in (
        {f"x{number}": "0.safetensors" for number in range(20_001)},
        {f"x{number}": f"{number}.safetensors" for number in range(101)},
    ):
        write_index(folder, places)
        with pytest.raises(UnsafeFileError, match="at most 20,000 in 100 may be"):
            open_huggingface(folder)


def test_a_file_of_many_names_is_read_under_none(folder):
    cut(folder, 1)
    (folder / "1.safetensors").symlink_to("0.safetensors")
    write_index(folder, {"a": "0.safetensors", "b": "1.safetensors"})
    with pytest.raises(UnsafeFileError, match="names one file by several names, through links"):
        open_huggingface(folder)


def test_files_that_hold_more_than_the_index_says_are_not_all_read(folder, monkeypatch):
    cut(folder, 3)
    write_index(folder, {f"x{number}": f"{number}.safetensors" for number in range(3)})
    opened = []

    def watch(path: Path) -> dict[str, LazyTensor]:
        opened.append(path.name)
        return open_safetensors(path)

    form = huggingface.WEIGHTS[0]._replace(open=watch)
    monkeypatch.setattr(huggingface, "WEIGHTS", (form, *huggingface.WEIGHTS[1:]))
    with pytest.raises(DamagedFileError, match="and its files disagree on where"):
        open_huggingface(folder)
    assert opened == ["0.safetensors"]


def test_an_index_that_is_none_and_a_tensor_in_two_files_are_refused(folder):
    places = cut(folder, 2)
    save_file({name: torch.zeros(1) for name in places}, folder / "1.safetensors")
    with pytest.raises(CheckpointError, match=r"1\.safetensors and 0\.safetensors both hold"):
        open_huggingface(folder)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": 1}}')
    with pytest.raises(DamagedFileError, match="must have a weight_map from tensors to files"):
        open_huggingface(folder)
