import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.checkpoints import huggingface
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.huggingface import open_huggingface
from bertkit.checkpoints.safetensors_file import open_safetensors
from bertkit.checkpoints.torch_tensors import read_safetensors
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining

CONFIG = BertConfig(
    vocab_size=12, hidden_size=4, num_hidden_layers=2, num_attention_heads=1, intermediate_size=6
)


@pytest.fixture
def folder(tmp_path):
    BertForPreTraining(CONFIG).save_pretrained(tmp_path)
    return tmp_path


def test_missing_files(folder, tmp_path):
    with pytest.raises(MissingFileError, match="doesn't exist"):
        BertForPreTraining.from_pretrained(tmp_path / "nowhere")
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingFileError, match=r"model\.safetensors"):
        BertForPreTraining.from_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(MissingFileError, match="is no model folder"):
        BertForPreTraining.from_pretrained(folder)


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


def test_files_that_hold_more_than_the_index_says_are_not_all_read(folder, monkeypatch):
    cut(folder, 3)
    write_index(folder, {f"x{number}": f"{number}.safetensors" for number in range(3)})
    opened = []

    def watch(path: Path) -> dict[str, LazyTensor]:
        opened.append(path.name)
        return open_safetensors(path)

    monkeypatch.setitem(huggingface.OPENERS, "model.safetensors", watch)
    with pytest.raises(DamagedFileError, match="and its files disagree on where"):
        open_huggingface(folder)
    assert opened == ["0.safetensors"]
