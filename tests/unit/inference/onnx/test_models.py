"""The exported file of each architecture gives our model's results, and is read back."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from tests.closeness import assert_close
from tests.parity.agreement import randomize
from tests.parity.test_heads import NUM_CHOICES
from tests.unit.inference.small import arrays_of, build_config

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.onnx_file import open_onnx
from bertkit.checkpoints.torch_tensors import export_tensors, read_tensor
from bertkit.inference.onnx.export import write_onnx
from bertkit.inference.onnx.models import EXPORTED, find_kind
from bertkit.models.bert.architectures import ARCHITECTURES
from bertkit.models.bert.config import BertConfig
from bertkit.training.processor import has_native_int8

IDS = torch.tensor([[2, 5, 6, 7, 3], [2, 9, 3, 0, 0], [2, 3, 0, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
MEAN = {"layers": "last", "lstm_hidden": None, "scores": "sequence", "pooling": "mean"}


def build(architecture: str) -> Any:
    labels: dict[str, Any] = {"num_labels": 4}
    if architecture == "BertForQuestionAnswering":
        labels = {}
    if architecture == "BertFeatureBased":
        labels["feature_head"] = MEAN
    config = build_config(vocab_size=12, hidden_size=16, intermediate_size=32, **labels)
    model = ARCHITECTURES[architecture].kind(config).eval()
    randomize(model)
    return model


def inputs(architecture: str) -> dict[str, torch.Tensor]:
    mask = (IDS > 0).long()
    batch = {"input_ids": IDS, "attention_mask": mask, "token_type_ids": SEGMENTS}
    if architecture == "BertForMultipleChoice":
        assert len(IDS) == NUM_CHOICES
        return {name: torch.stack([ids, ids.flip(0)]) for name, ids in batch.items()}
    return batch


def run(file: Path, feeds: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, {name: ids.numpy() for name, ids in feeds.items()})
    return dict(zip(names, values, strict=True))


def results(architecture: str, model: Any) -> dict[str, torch.Tensor]:
    """Our model's, under the names in the file."""
    with torch.no_grad():
        found = model(**inputs(architecture))
    if isinstance(found, torch.Tensor):
        return {"logits": found}
    values = dict(vars(found))
    if "prediction_logits" in values:
        values["logits"] = values.pop("prediction_logits")
    return values


@pytest.mark.parametrize("architecture", EXPORTED)
def test_the_file_gives_what_the_model_gives(tmp_path, architecture):
    model, kind = build(architecture), EXPORTED[architecture]
    _, outputs = write_onnx(tmp_path, model.config, arrays_of(model), kind)
    onnx.checker.check_model(tmp_path / "onnx/model.onnx", full_check=True)
    found = run(tmp_path / "onnx/model.onnx", inputs(architecture))
    expected = results(architecture, model)
    assert found.keys() == expected.keys() == set(outputs)
    real = inputs(architecture)["attention_mask"].bool()
    for name, values in expected.items():
        theirs = torch.from_numpy(found[name])
        assert theirs.shape == values.shape
        if values.shape[:2] == real.shape:  # what stands at padding means nothing
            theirs, values = theirs[real], values[real]
        assert_close(theirs, values)


@pytest.mark.parametrize("architecture", EXPORTED)
def test_the_weights_are_read_back_bit_for_bit(tmp_path, architecture):
    model = build(architecture)
    write_onnx(tmp_path, model.config, arrays_of(model), EXPORTED[architecture])
    found = open_onnx(tmp_path / "onnx/model.onnx")
    expected = export_tensors(model.state_dict(), model.config.names.table(type(model).__name__))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert read_tensor(found[name]).equal(tensor)


@pytest.mark.parametrize("architecture", EXPORTED)
def test_int8_is_near_and_is_read_back_as_it_computes(tmp_path, architecture):
    model = build(architecture)
    write_onnx(tmp_path, model.config, arrays_of(model), EXPORTED[architecture], None, "int8")
    found = run(tmp_path / "onnx/model_quantized.onnx", inputs(architecture))
    real = inputs(architecture)["attention_mask"].bool()
    for name, values in results(architecture, model).items():
        theirs = torch.from_numpy(found[name])
        if values.shape[:2] == real.shape:
            theirs, values = theirs[real], values[real]
        if has_native_int8():  # else sums of its products may saturate
            assert torch.cosine_similarity(theirs.flatten(), values.flatten(), dim=0) > 0.99
    stored, expected = (
        open_onnx(tmp_path / "onnx/model_quantized.onnx"),
        export_tensors(model.state_dict(), model.config.names.table(type(model).__name__)),
    )
    assert stored.keys() == expected.keys()
    num_rounded = 0
    for name, tensor in expected.items():
        # Half a step of 127 between 0 and the largest weight of a row.
        step = tensor.abs().amax(dim=-1, keepdim=True) / 127
        error = (read_tensor(stored[name]) - tensor).abs()
        assert (error <= 0.51 * step).all()
        num_rounded += bool(error.any())
    assert num_rounded >= 12  # six matrices a layer


def test_what_has_no_graph_is_named():
    for changes in ({"scores": "token", "pooling": "cls"}, {"layers": "last_four"}):
        head = {**MEAN, **changes}
        config = BertConfig.preset("mini", vocab_size=12, feature_head=head)
        with pytest.raises(CheckpointError, match="and not of this BertFeatureBased"):
            find_kind("BertFeatureBased", config, "folder")
    causal = BertConfig.preset("tiny", vocab_size=12, is_decoder=True)
    with pytest.raises(CheckpointError, match="folder reads left to right"):
        find_kind("BertForTokenClassification", causal, "folder")
