"""Every published head against transformers' class of the same name, and files in both directions.

The weights are the same on both sides, random and not zero, biases and norms included.
"""

from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.closeness import assert_close
from tests.exhaustive import mark_all_but
from tests.parity.agreement import (
    NUM_CHOICES,
    PACKED,
    SIZES,
    assert_agreement,
    keep_real,
    random_batch,
    randomize,
)
from torch import Tensor, nn

import bertkit
from bertkit.nn.packing import PackedBatch

LABELS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
MEANING = {
    "id2label": LABELS,
    "label2id": {label: id_ for id_, label in LABELS.items()},
    "problem_type": "multi_label_classification",
    "classifier_dropout": 0.25,
    "layer_norm_eps": 1e-5,
    "chunk_size_feed_forward": 32,  # changes no output, and must divide the padded length
}
LENGTHS = [1, 3, 9, 30, 17, 64]

every_model = pytest.mark.parametrize("name", PACKED)


def build_theirs(name: str, **changes: Any) -> nn.Module:
    labels = {"num_labels": 2} if name == "BertForQuestionAnswering" else MEANING
    config = transformers.BertConfig(**{**SIZES, **labels, **changes})
    model = getattr(transformers, name)(config).eval()
    randomize(model)
    return model


def load_ours(name: str, folder: Path, **options: Any) -> Any:
    return getattr(bertkit, name).from_pretrained(folder, **options)


def batch_for(name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Padded ids, segments and mask; [batch, choices, length] for the multiple choice."""
    arrays = random_batch(LENGTHS)
    if name != "BertForMultipleChoice":
        return arrays
    ids, segments, mask = (array.view(-1, NUM_CHOICES, array.shape[-1]) for array in arrays)
    return ids, segments, mask


def compute_theirs(model: nn.Module, name: str) -> dict[str, Tensor]:
    """Outputs at real tokens, by transformers' names."""
    ids, segments, mask = batch_for(name)
    found = model(input_ids=ids, token_type_ids=segments, attention_mask=mask)
    return {key: keep_real(value, mask) for key, value in found.items()}


def compute_ours(model: nn.Module, name: str) -> dict[str, Tensor]:
    """The same, from the padded door."""
    ids, segments, mask = batch_for(name)
    found = model(ids, segments, mask)
    named = vars(found) if is_dataclass(found) else {"logits": found}
    for value in named.values():
        if value.shape[:2] == mask.shape:
            assert not value[~mask.bool()].any()
    return {key: keep_real(value, mask) for key, value in named.items()}


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_outputs_agree_padded_and_packed(name, dtype, tmp_path):
    theirs = build_theirs(name)
    theirs.save_pretrained(tmp_path)
    theirs, ours = theirs.to(dtype), load_ours(name, tmp_path).to(dtype)
    with torch.no_grad():
        expected = compute_theirs(theirs, name)
        assert_agreement(compute_ours(ours, name), expected)
        ids, segments, mask = (array.flatten(0, -2) for array in batch_for(name))
        batch = PackedBatch.from_padded(ids, segments, mask.bool())
        assert_agreement(PACKED[name](ours, batch), expected)


@every_model
def test_they_load_what_we_write(name, tmp_path):
    build_theirs(name).save_pretrained(tmp_path / "theirs")
    ours = load_ours(name, tmp_path / "theirs")
    ours.save_pretrained(tmp_path / "ours")
    again, info = getattr(transformers, name).from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert {key: found for key, found in info.items() if found} == {}
    with torch.no_grad():
        assert_agreement(compute_ours(ours, name), compute_theirs(again, name))
    if name != "BertForQuestionAnswering":
        assert {key: getattr(again.config, key) for key in MEANING} == MEANING
    assert again.config.num_labels == ours.config.num_labels
    assert again.config.architectures == [name]
    first, second = (
        load_file(tmp_path / side / "model.safetensors") for side in ("theirs", "ours")
    )
    assert first.keys() == second.keys()
    assert all(torch.equal(tensor, second[key]) for key, tensor in first.items())


@every_model
@pytest.mark.parametrize("dtype", mark_all_but([torch.float16], [torch.float16, torch.bfloat16]))
def test_half_precision_is_read_as_it_is(name, dtype, tmp_path):
    build_theirs(name).to(dtype).save_pretrained(tmp_path)
    reference = getattr(transformers, name).from_pretrained(tmp_path, dtype=torch.float32)
    with torch.no_grad():
        expected = compute_theirs(reference, name)
        assert_agreement(compute_ours(load_ours(name, tmp_path), name), expected)


def name_norms_as_of_old(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta"
    )


def turn_prefix(name: str) -> str:
    """Off where it is, on where it isn't: the encoder is `bert.` in models with heads only."""
    if name.startswith(("embeddings.", "encoder.", "pooler.")):
        return f"bert.{name}"
    return name.removeprefix("bert.")


@every_model
@pytest.mark.parametrize(
    "rename", mark_all_but([name_norms_as_of_old], [name_norms_as_of_old, turn_prefix])
)
def test_other_names_of_the_same_tensors_are_known(name, rename, tmp_path):
    theirs = build_theirs(name)
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    renamed = {rename(key): tensor for key, tensor in tensors.items()}
    assert renamed.keys() != tensors.keys()
    save_file(renamed, path)
    with torch.no_grad():
        assert_agreement(
            compute_ours(load_ours(name, tmp_path), name), compute_theirs(theirs, name)
        )


@pytest.mark.parametrize("name", ["BertForPreTraining", "BertForMaskedLM"])
def test_copies_of_tied_tensors_and_old_buffers_are_known(name, tmp_path):
    theirs = build_theirs(name)
    theirs.save_pretrained(tmp_path)
    state = {key: tensor.clone() for key, tensor in theirs.state_dict().items()}
    assert {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"} <= state.keys()
    state["bert.embeddings.position_ids"] = torch.arange(512)[None]
    save_file(state, tmp_path / "model.safetensors")
    with torch.no_grad():
        assert_agreement(
            compute_ours(load_ours(name, tmp_path), name), compute_theirs(theirs, name)
        )


def test_a_backbone_without_pooler_goes_both_ways(tmp_path):
    config = transformers.BertConfig(**SIZES)
    theirs = transformers.BertModel(config, add_pooling_layer=False).eval()
    randomize(theirs)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_ours("BertModel", tmp_path / "theirs")
    assert ours.pooler is None
    ours.save_pretrained(tmp_path / "ours")
    again, info = transformers.BertModel.from_pretrained(
        tmp_path / "ours", add_pooling_layer=False, output_loading_info=True
    )
    assert {key: found for key, found in info.items() if found} == {}
    ids, segments, mask = batch_for("BertModel")
    with torch.no_grad():
        expected = again(input_ids=ids, token_type_ids=segments, attention_mask=mask)
        found = ours(ids, segments, mask)
    assert found.pooler_output is None
    real = mask.bool()
    assert_close(found.last_hidden_state[real], expected.last_hidden_state[real])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("BertForPreTraining", "BertModel"),
        ("BertForPreTraining", "BertForMaskedLM"),
        ("BertForPreTraining", "BertForNextSentencePrediction"),
        ("BertForSequenceClassification", "BertModel"),
        ("BertForSequenceClassification", "BertForTokenClassification"),
    ],
)
def test_a_part_of_a_larger_checkpoint_agrees(written, read, tmp_path):
    build_theirs(written).save_pretrained(tmp_path)
    reference = getattr(transformers, read).from_pretrained(tmp_path)
    with torch.no_grad():
        expected = compute_theirs(reference, read)
        assert_agreement(compute_ours(load_ours(read, tmp_path), read), expected)
