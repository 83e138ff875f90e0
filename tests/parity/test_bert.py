"""The encoder and its pre-training heads against transformers, for the same random weights."""

import pytest
import torch
from tests.closeness import assert_close
from tests.parity.agreement import SIZES, random_batch, randomize
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining as TheirModel

from bertkit.checkpoints.names import BERT
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.nn.block import ACTIVATIONS
from bertkit.nn.packing import PackedBatch

LENGTHS = [1, 2, 3, 5, 17, 64, 128, 511, 512]


@pytest.fixture(scope="module")
def theirs():
    """A model whose every weight, biases and norms included, is random and not zero."""
    model = TheirModel(TheirConfig(**SIZES, attn_implementation="eager")).eval()
    randomize(model)
    return model


@pytest.fixture(scope="module")
def ours(theirs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return BertForPreTraining.from_pretrained(folder)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_activation_agrees(theirs, tmp_path, name):
    reference = TheirModel(TheirConfig(**{**SIZES, "hidden_act": name})).eval()
    reference.load_state_dict(theirs.state_dict())
    reference.save_pretrained(tmp_path)
    ours, reference = BertForPreTraining.from_pretrained(tmp_path).double(), reference.double()
    ids, segments, mask = random_batch([3, 9, 30])
    expected = reference(input_ids=ids, token_type_ids=segments, attention_mask=mask)
    found = ours(ids, segments, mask)
    real = mask.bool()
    assert_close(found.prediction_logits[real], expected.prediction_logits[real])
    assert_close(found.seq_relationship_logits, expected.seq_relationship_logits)


@pytest.mark.parametrize("lengths", [LENGTHS, [64, 64, 64]])
def test_losses_and_all_gradients_agree_packed(theirs, ours, lengths):
    theirs, ours = theirs.double(), ours.double()
    ids, segments, mask = random_batch(lengths)
    generator = torch.Generator().manual_seed(1)
    chosen = mask.bool() & (torch.rand(mask.shape, generator=generator) < 0.3)
    labels = torch.where(chosen, torch.randint(5, 97, ids.shape, generator=generator), -100)
    inputs = {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask}
    with torch.no_grad():
        best = theirs(**inputs).prediction_logits.argmax(dim=-1)
    labels = torch.where(chosen & (ids % 2 == 0), best, labels)  # some are predicted
    relations = torch.arange(len(lengths)) % 2

    theirs.zero_grad()
    expected = theirs(**inputs, labels=labels, next_sentence_label=relations)
    expected.loss.backward()

    batch = PackedBatch.from_padded(ids, segments, mask.bool())
    positions = torch.nonzero(chosen[mask.bool()])[:, 0]
    ours.zero_grad()
    masked_loss, num_hits, next_scores = ours.masked_loss_and_relations(
        batch, positions, labels[chosen]
    )
    assert 0 < num_hits < len(positions)
    assert num_hits == (best == labels)[chosen].sum()
    loss = masked_loss / len(positions) + torch.nn.functional.cross_entropy(next_scores, relations)
    loss.backward()
    assert_close(loss, expected.loss)

    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        assert_close(
            parameter.grad,
            torch.cat([gradients.pop(part) for part in BERT.table().their_names(name)]),
        )
    assert gradients == {}


@pytest.mark.parametrize(
    ("preset", "num_parameters"),
    [
        ("tiny", 4_385_920),
        ("mini", 11_170_560),
        ("small", 28_763_648),
        ("medium", 41_373_184),
        ("base", 109_482_240),
        ("large", 335_141_888),
    ],
)
def test_presets_have_the_published_numbers_of_parameters(preset, num_parameters):
    with torch.device("meta"):
        model = BertModel(BertConfig.preset(preset))
    assert sum(parameter.numel() for parameter in model.parameters()) == num_parameters
