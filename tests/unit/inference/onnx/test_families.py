"""Exported files of every family give our models' results, under the names of the family."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from tests.closeness import assert_close
from tests.families import FAMILIES, random_batch
from tests.unit.inference.family_models import HEADS, HERE, LENGTHS, build_family_model
from tests.unit.inference.small import arrays_of

from bertkit.checkpoints.onnx_file import open_onnx
from bertkit.checkpoints.torch_tensors import export_tensors, read_tensor
from bertkit.inference.onnx.export import write_onnx
from bertkit.inference.onnx.models import EXPORTED
from bertkit.training.processor import has_native_int8


def write(folder, model, precision="fp32"):
    kind = EXPORTED[type(model).__name__]
    write_onnx(folder, model.config, arrays_of(model), kind, None, precision)
    return folder / ("onnx/model.onnx" if precision == "fp32" else "onnx/model_quantized.onnx")


def compute(path, batch):
    """The file's outputs for what it takes, by name."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    taken = {each.name: batch[each.name].numpy() for each in session.get_inputs()}
    assert taken.keys() == batch.keys()
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, taken), strict=True))


def draw_batch(family, architecture):
    batch = random_batch(family, LENGTHS)
    if architecture == "BertForMultipleChoice":
        return {name: torch.stack([ids, ids.flip(0)], dim=1) for name, ids in batch.items()}
    return batch


def give(model, batch):
    """Our model's outputs, under the names of the file's."""
    with torch.no_grad():
        found = model(**batch)
    if isinstance(found, torch.Tensor):
        return {"logits": found}
    given = {name: values for name, values in vars(found).items() if values is not None}
    if "prediction_logits" in given:
        given["logits"] = given.pop("prediction_logits")
    return given


def keep_real(values, batch):
    """Leave out what stands at padding, which means nothing."""
    mask = batch["attention_mask"].bool()
    return values[mask] if values.shape[: mask.dim()] == mask.shape else values


@pytest.mark.parametrize(("family", "architecture"), HEADS)
def test_the_file_gives_what_the_model_gives(tmp_path, family, architecture):
    model, batch = build_family_model(family, architecture), draw_batch(family, architecture)
    path = write(tmp_path, model)
    onnx.checker.check_model(path, full_check=True)
    assert ("token_type_ids" in batch) == (FAMILIES[family].num_segments == 2)
    found, expected = compute(path, batch), give(model, batch)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        theirs = torch.from_numpy(found[name])
        assert theirs.shape == values.shape
        assert_close(keep_real(theirs, batch), keep_real(values, batch))


@pytest.mark.parametrize(("family", "architecture"), HEADS)
def test_weights_are_read_back_bit_for_bit(tmp_path, family, architecture):
    model = build_family_model(family, architecture)
    found = open_onnx(write(tmp_path, model))
    expected = export_tensors(model.state_dict(), model.config.names.table(architecture))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert read_tensor(found[name]).equal(tensor)


@pytest.mark.parametrize("family", HERE)
def test_int8_is_near(tmp_path, family):
    model, batch = build_family_model(family, "BertModel"), draw_batch(family, "BertModel")
    found = compute(write(tmp_path, model, "int8"), batch)["last_hidden_state"]
    expected = give(model, batch)["last_hidden_state"]
    found, expected = (keep_real(each, batch) for each in (torch.from_numpy(found), expected))
    assert not np.array_equal(found, expected)
    if has_native_int8():  # else sums of its products may saturate
        assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > 0.99


# BERT, DistilBERT and ELECTRA count columns, padding among them, as in transformers.
@pytest.mark.parametrize(
    "family", [each for each in HERE if "pad_token_id" in FAMILIES[each].sizes]
)
def test_padding_on_the_left_is_as_good_as_on_the_right(tmp_path, family):
    model, batch = build_family_model(family, "BertModel"), random_batch(family, [9])
    path = write(tmp_path, model)
    pads = {"input_ids": FAMILIES[family].sizes["pad_token_id"], "attention_mask": 0}
    shifted = {
        name: torch.cat([torch.full((1, 4), pads[name]), ids], dim=1) for name, ids in batch.items()
    }
    expected = compute(path, batch)["last_hidden_state"]
    assert_close(compute(path, shifted)["last_hidden_state"][:, 4:], expected)
