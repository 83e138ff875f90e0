"""Folders of each encoder family, converted: transformers loads the same tensors, bit for bit."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.exhaustive import mark_all_but
from tests.families import FAMILIES, FAMILY_HEADS, class_name, make_folder, make_model

from bertkit.jobs.convert import convert
from bertkit.jobs.export import export
from bertkit.jobs.inspect import describe
from bertkit.jobs.settings import ConvertSettings
from bertkit.models.bert.heads import BertForMaskedLM

SHOWN = ("ForMaskedLM", "ForSequenceClassification")
every_head = pytest.mark.parametrize(
    ("family", "head"),
    [
        pytest.param(*pair, marks=[] if pair[1] in SHOWN else pytest.mark.exhaustive)
        for pair in FAMILY_HEADS
    ],
)


def assert_equal_models(folder: Path, expected: transformers.PreTrainedModel) -> None:
    """Nothing is missing or left over, and every tensor is equal."""
    found, report = type(expected).from_pretrained(folder, output_loading_info=True)
    assert {key: names for key, names in report.items() if names} == {}
    theirs = expected.state_dict()
    assert theirs.keys() == found.state_dict().keys()
    for name, tensor in found.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name


@every_head
def test_a_converted_folder_has_every_tensor(family: str, head: str, tmp_path: Path) -> None:
    source = make_folder(tmp_path / "theirs", family, head, with_tokenizer=False)
    result = convert(source, tmp_path / "ours")
    expected = getattr(transformers, class_name(family, head)).from_pretrained(source)
    assert_equal_models(tmp_path / "ours", expected)
    assert result.num_parameters == expected.num_parameters()


@every_head
def test_a_folder_is_described_without_running_it(family: str, head: str, tmp_path: Path) -> None:
    found = describe(make_folder(tmp_path / "model", family, head, with_tokenizer=False))
    model = make_model(family, head)
    assert found.problems == ()
    assert found.num_parameters == model.num_parameters()
    # Its discriminator is an encoder to fine-tune; that objective isn't trained.
    encoder = class_name(family, "Model")
    is_discriminator = encoder == "ElectraModel" and head == "ForPreTraining"
    assert found.architecture == (encoder if is_discriminator else class_name(family, head))
    sizes = dict(found.list_sizes())
    layers = model.config.num_hidden_layers
    assert sizes["sizes"].startswith(f"{layers} layers, hidden 24, feed-forward 40, vocabulary 97")


FILES: dict[str, dict[str, Any]] = {
    "shards": {"max_shard_size": "20kB"},
    "pickle": {},
}


@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("family", mark_all_but(["mpnet", "modernbert"], FAMILIES))
def test_shards_and_pickles_are_read(family: str, files: str, tmp_path: Path) -> None:
    model, source = make_model(family, "ForMaskedLM"), tmp_path / "theirs"
    model.save_pretrained(source, **FILES[files])
    if files == "pickle":
        (source / "model.safetensors").unlink()
        torch.save(model.state_dict(), source / "pytorch_model.bin")
    else:
        assert len([*source.glob("model-*.safetensors")]) > 1
    convert(source, tmp_path / "ours", ConvertSettings(max_shard_size="20kB"))
    assert_equal_models(tmp_path / "ours", model)


@pytest.mark.parametrize("family", mark_all_but(["mpnet", "modernbert"], FAMILIES))
def test_an_exported_folder_has_the_same_weights(family: str, tmp_path: Path) -> None:
    source = make_folder(tmp_path / "theirs", family, "ForMaskedLM", with_tokenizer=False)
    export(source, tmp_path / "onnx")
    ours, again = (
        BertForMaskedLM.from_pretrained(folder).state_dict()
        for folder in (source, tmp_path / "onnx")
    )
    assert ours.keys() == again.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, again[name]), name
