"""Each encoder family and each of its heads against transformers, and files in both directions.

The weights are the same on both sides, random and not zero, biases and norms included. Inside
bertkit, a family's classes have BERT's names.
"""

import json
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from tests.closeness import assert_close
from tests.families import (
    FAMILIES,
    FAMILY_HEADS,
    NAMED_LABELS,
    class_name,
    make_folder,
    random_batch,
    randomize,
)
from tests.parity.agreement import NUM_CHOICES, PACKED, assert_agreement, keep_real
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.modernbert import modeling_modernbert

import bertkit
from bertkit.nn.packing import PackedBatch

LENGTHS = [1, 3, 9, 30, 17, 64]
SHORT = [5, 2, 13, 20, 1, 7]
# What differs from the family that is tested with all heads: BERT is, in test_heads.py.
SIMILAR = {
    "bert": {"Model"},
    "electra-wide": {"Model", "ForMaskedLM"},
    "xlm-roberta": {"ForSequenceClassification"},
    "camembert": {"ForMaskedLM"},
}
# ELECTRA's discriminator is loaded as an encoder: see below.
READ = [
    pytest.param(
        family, head, marks=[] if head in SIMILAR.get(family, [head]) else pytest.mark.exhaustive
    )
    for family, head in FAMILY_HEADS
    if head != "ForPreTraining"
]
every_family = pytest.mark.parametrize("family", list(FAMILIES))
every_head = pytest.mark.parametrize(("family", "head"), READ)

Batch = dict[str, Tensor]


@pytest.fixture(autouse=True)
def rotate_in_float64(monkeypatch):
    """Keep transformers from rounding queries and keys of float64 to float32 before their rotation.

    Its `apply_rotary_pos_emb` computes in float32 whatever the model's numbers are.
    """
    rotate = modeling_modernbert.apply_rotary_pos_emb

    def rotate_unrounded(query, *others, **more):
        with monkeypatch.context() as patch:
            if query.dtype == torch.float64:
                patch.setattr(Tensor, "float", lambda values: values)
            return rotate(query, *others, **more)

    monkeypatch.setattr(modeling_modernbert, "apply_rotary_pos_emb", rotate_unrounded)


def write(folder: Path, family: str, head: str, **changes: Any) -> Path:
    return make_folder(folder, family, head, with_tokenizer=False, **changes)


def load_theirs(folder: Path, family: str, head: str) -> PreTrainedModel:
    """Load with transformers; nothing may be missing or left over."""
    kind = getattr(transformers, class_name(family, head))
    model, info = kind.from_pretrained(folder, output_loading_info=True)
    assert {key: found for key, found in info.items() if found} == {}
    theirs: PreTrainedModel = model.eval()
    return theirs


def load_ours(folder: Path, head: str) -> Any:
    return getattr(bertkit, f"Bert{head}").from_pretrained(folder)


def draw_batch(family: str, head: str, lengths: list[int]) -> Batch:
    """A padded batch; of a multiple choice, `[questions, choices, length]`."""
    batch = random_batch(family, lengths)
    if head != "ForMultipleChoice":
        return batch
    return {key: array.view(-1, NUM_CHOICES, array.shape[-1]) for key, array in batch.items()}


def compute_theirs(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Outputs at real tokens, by transformers' names."""
    return {key: keep_real(found, batch["attention_mask"]) for key, found in model(**batch).items()}


def compute_ours(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """The same, from the padded door."""
    found = model(batch["input_ids"], batch.get("token_type_ids"), batch["attention_mask"])
    named = vars(found) if is_dataclass(found) else {"logits": found}
    mask = batch["attention_mask"]
    return {key: keep_real(value, mask) for key, value in named.items() if value is not None}


def compute_packed(model: nn.Module, head: str, batch: Batch) -> dict[str, Tensor]:
    """The same, from the packed batch."""
    if head == "Model" and model.pooler is None:
        return {"last_hidden_state": model.encoder(pack(batch))}
    return PACKED[f"Bert{head}"](model, pack(batch))


def pack(batch: Batch) -> PackedBatch:
    ids, mask = (batch[key].flatten(0, -2) for key in ("input_ids", "attention_mask"))
    segments = batch.get("token_type_ids", torch.zeros_like(ids)).flatten(0, -2)
    return PackedBatch.from_padded(ids, segments, mask.bool())


def assert_same_outputs(theirs: nn.Module, ours: nn.Module, batch: Batch, head: str) -> None:
    with torch.no_grad():
        expected = compute_theirs(theirs, batch)
        assert_agreement(compute_ours(ours, batch), expected)
        assert_agreement(compute_packed(ours, head, batch), expected)


@every_head
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_outputs_agree_padded_and_packed(family, head, dtype, tmp_path):
    folder = write(tmp_path, family, head)
    theirs, ours = load_theirs(folder, family, head).to(dtype), load_ours(folder, head).to(dtype)
    for lengths in (LENGTHS, SHORT):
        assert_same_outputs(theirs, ours, draw_batch(family, head, lengths), head)


# Each is a part that published models of the family differ in.
VARIANTS = [
    ("distilbert", "Model", {"activation": "relu"}),
    ("electra", "ForMaskedLM", {"hidden_act": "relu", "type_vocab_size": 3}),
    ("electra", "ForSequenceClassification", {"classifier_dropout": 0.3}),
    ("roberta", "ForSequenceClassification", {"num_labels": 1, "problem_type": "regression"}),
    ("roberta", "Model", {"type_vocab_size": 2, "pad_token_id": 4}),
    ("mpnet", "ForSequenceClassification", {"num_labels": 1}),
    ("modernbert", "ForSequenceClassification", {"classifier_pooling": "mean"}),
    ("modernbert", "ForMultipleChoice", {"classifier_pooling": "mean"}),
    ("modernbert", "ForTokenClassification", {"classifier_bias": True}),
    ("modernbert", "ForMaskedLM", {"hidden_activation": "relu", "classifier_activation": "relu"}),
    (
        "modernbert",
        "ForMaskedLM",
        {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "norm_eps": 1e-3},
    ),
    ("modernbert", "Model", {"global_attn_every_n_layers": 2, "local_attention": 6}),
    ("modernbert", "Model", {"global_rope_theta": 500.0, "local_rope_theta": 20.0}),
    ("modernbert", "Model", {"num_hidden_layers": 1}),
]


@pytest.mark.parametrize(("family", "head", "changes"), VARIANTS)
def test_variants_agree(family, head, changes, tmp_path):
    folder = write(tmp_path / "theirs", family, head, **changes)
    theirs, ours = load_theirs(folder, family, head), load_ours(folder, head)
    assert_same_outputs(theirs.double(), ours.double(), draw_batch(family, head, LENGTHS), head)
    ours.float().save_pretrained(tmp_path / "ours")
    assert_same_files(folder, tmp_path / "ours")


def test_modernberts_layers_are_read_in_the_published_spelling(tmp_path):
    write(tmp_path, "modernbert", "Model")
    content = json.loads((tmp_path / "config.json").read_text())
    assert content.pop("layer_types")
    assert content.pop("rope_parameters")
    published = {"global_attn_every_n_layers": 2, "global_rope_theta": 300.0}
    content |= {**published, "local_rope_theta": 20.0}
    (tmp_path / "config.json").write_text(json.dumps(content))
    theirs, ours = load_theirs(tmp_path, "modernbert", "Model"), load_ours(tmp_path, "Model")
    batch = random_batch("modernbert", LENGTHS)
    assert_same_outputs(theirs.double(), ours.double(), batch, "Model")


@every_family
def test_padding_on_the_left_changes_nothing(family, tmp_path):
    folder = write(tmp_path, family, "ForMaskedLM")
    theirs = load_theirs(folder, family, "ForMaskedLM").double()
    ours = load_ours(folder, "ForMaskedLM").double()
    batch = {name: rows.flip(1) for name, rows in random_batch(family, LENGTHS).items()}
    with torch.no_grad():
        assert_agreement(compute_ours(ours, batch), compute_theirs(theirs, batch))


LONG = {"mpnet": [200, 131, 3], "modernbert": [900, 257, 40]}  # beyond all buckets, many windows


@pytest.mark.parametrize("family", list(LONG))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_long_sequences_agree(family, dtype, tmp_path):
    changes = {"max_position_embeddings": 1000} if family == "modernbert" else {}
    folder = write(tmp_path, family, "Model", **changes)
    theirs = load_theirs(folder, family, "Model").to(dtype)
    ours = load_ours(folder, "Model").to(dtype)
    assert_same_outputs(theirs, ours, draw_batch(family, "Model", LONG[family]), "Model")


@every_family
def test_the_states_of_all_layers_agree(family, tmp_path):
    folder = write(tmp_path, family, "Model")
    batch = random_batch(family, LENGTHS)
    theirs = load_theirs(folder, family, "Model").double()
    ours = load_ours(folder, "Model").double()
    with torch.no_grad():
        expected = theirs(**batch, output_hidden_states=True).hidden_states
        found = list(ours.encoder.hidden_states(pack(batch)))
    assert_close(found, [keep_real(states, batch["attention_mask"]) for states in expected])


@every_head
def test_gradients_of_all_parameters_agree(family, head, tmp_path):
    folder = write(tmp_path / "model", family, head)
    theirs = load_theirs(folder, family, head).double()
    ours = load_ours(folder, head).double()
    batch = draw_batch(family, head, LENGTHS)
    sum_outputs(compute_theirs(theirs, batch)).backward()
    sum_outputs(compute_packed(ours, head, batch)).backward()
    assert_same_gradients(theirs, ours, tmp_path)


@every_family
def test_the_masked_loss_and_its_gradients_agree(family, tmp_path):
    folder = write(tmp_path / "model", family, "ForMaskedLM")
    theirs = load_theirs(folder, family, "ForMaskedLM").double()
    ours = load_ours(folder, "ForMaskedLM").double()
    batch = random_batch(family, LENGTHS)
    generator = torch.Generator().manual_seed(1)
    real = batch["attention_mask"].bool()
    chosen = real & (torch.rand(real.shape, generator=generator) < 0.3)
    labels = torch.where(chosen, batch["input_ids"].flip(1), -100).masked_fill(~chosen, -100)
    # ModernBERT's own loss is computed in float32, whatever its logits are.
    expected = F.cross_entropy(theirs(**batch).logits.flatten(0, 1), labels.flatten())
    expected.backward()
    positions = torch.nonzero(chosen[real])[:, 0]
    loss, _ = ours.masked_loss(pack(batch), positions, labels[chosen])
    (loss / len(positions)).backward()
    assert_close(loss / len(positions), expected)
    assert_same_gradients(theirs, ours, tmp_path)


def sum_outputs(outputs: dict[str, Tensor]) -> Tensor:
    """A scalar that depends on every output in a way of its own."""
    generator = torch.Generator().manual_seed(2)
    total = torch.zeros((), dtype=torch.float64)
    for output in outputs.values():
        weights = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        total = total + (weights * output).sum()
    return total


def assert_same_gradients(theirs: PreTrainedModel, ours: Any, folder: Path) -> None:
    """Compare gradients under the names of the files, in which each side can write them."""
    for side, model in (("theirs", theirs), ("ours", ours)):
        with torch.no_grad():
            for parameter in model.parameters():
                gradient = parameter.grad
                parameter.copy_(torch.zeros_like(parameter) if gradient is None else gradient)
        model.save_pretrained(folder / f"gradients of {side}")
    expected, found = (
        load_file(folder / f"gradients of {side}" / "model.safetensors")
        for side in ("theirs", "ours")
    )
    assert any(gradient.any() for gradient in expected.values())
    assert_close(found, expected)


def assert_same_files(theirs: Path, ours: Path) -> None:
    """Compare all tensors of two folders, bit for bit."""
    expected, found = (load_file(folder / "model.safetensors") for folder in (theirs, ours))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


@every_head
def test_they_load_what_we_write(family, head, tmp_path):
    folder = write(tmp_path / "theirs", family, head, problem_type="multi_label_classification")
    ours = load_ours(folder, head)
    ours.save_pretrained(tmp_path / "ours")
    assert_same_files(folder, tmp_path / "ours")
    again = load_theirs(tmp_path / "ours", family, head)
    assert_same_outputs(again, ours, draw_batch(family, head, SHORT), head)
    assert again.config.architectures == [class_name(family, head)]
    assert again.config.problem_type == "multi_label_classification"
    if head != "ForQuestionAnswering":
        assert {key: getattr(again.config, key) for key in NAMED_LABELS} == NAMED_LABELS
    theirs = load_theirs(folder, family, head)
    kept = FAMILIES[family].sizes.keys() & theirs.config.to_dict().keys()
    assert {key: again.config.to_dict()[key] for key in kept} == {
        key: theirs.config.to_dict()[key] for key in kept
    }


@every_head
def test_they_load_a_model_that_we_build_from_nothing(family, head, tmp_path):
    config = load_ours(write(tmp_path / "config", family, head), head).config
    ours = getattr(bertkit, f"Bert{head}")(config).eval()
    randomize(ours)
    ours.save_pretrained(tmp_path / "ours")
    kind = getattr(transformers, class_name(family, head))
    theirs, info = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["unexpected_keys"]
    assert not info["missing_keys"]
    assert_same_outputs(theirs.eval(), ours, draw_batch(family, head, LENGTHS), head)


@pytest.mark.parametrize("family", ["electra", "electra-wide"])
def test_an_electra_discriminator_is_read_as_an_encoder(family, tmp_path):
    folder = write(tmp_path, family, "ForPreTraining")
    theirs = transformers.ElectraModel.from_pretrained(folder).eval().double()
    ours = bertkit.BertModel.from_pretrained(folder).double()
    assert_same_outputs(theirs, ours, random_batch(family, LENGTHS), "Model")


@every_family
@pytest.mark.parametrize("written", ["ForMaskedLM", "ForSequenceClassification"])
def test_the_encoder_of_a_larger_checkpoint_agrees(family, written, tmp_path):
    theirs = load_theirs(write(tmp_path, family, written), family, written)
    ours = load_ours(tmp_path, "Model")
    batch = random_batch(family, LENGTHS)
    with torch.no_grad():
        expected = theirs.base_model(**batch).last_hidden_state
    found = compute_ours(ours, batch)["last_hidden_state"]
    assert_close(found, keep_real(expected, batch["attention_mask"]))


@every_family
def test_copies_of_tied_tensors_and_old_buffers_are_known(family, tmp_path):
    theirs = load_theirs(write(tmp_path, family, "ForMaskedLM"), family, "ForMaskedLM")
    state = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    assert state.keys() - load_file(tmp_path / "model.safetensors").keys()
    if family != "modernbert":  # which learns no positions
        state[f"{theirs.base_model_prefix}.embeddings.position_ids"] = torch.arange(70)[None]
    save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    ours = load_ours(tmp_path, "ForMaskedLM")
    assert_same_outputs(theirs, ours, random_batch(family, LENGTHS), "ForMaskedLM")
