"""The hidden states of every layer, and C, against transformers."""

import pytest
import torch
from tests.closeness import assert_close
from tests.parity.agreement import SIZES, random_batch, randomize
from transformers import BertConfig as TheirConfig
from transformers import BertModel as TheirModel

from bertkit.inference.embeddings.features import FeatureExtractor
from bertkit.inference.engines.engine import TorchEngine
from bertkit.models.bert.encoder import BertModel
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

LAYERS = list(range(SIZES["num_hidden_layers"] + 1))
WORDS = [f"w{number}" for number in range(SIZES["vocab_size"] - len(SPECIAL_TOKENS))]


@pytest.fixture(scope="module")
def theirs():
    model = TheirModel(TheirConfig(**SIZES, attn_implementation="eager")).eval()
    randomize(model)
    return model


@pytest.fixture(scope="module")
def folder(theirs, tmp_path_factory):
    path = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(path)
    Tokenizer([*SPECIAL_TOKENS, *WORDS]).save(path)
    return path


def test_states_of_every_layer_agree_in_batches(theirs, folder):
    ids, segments, mask = random_batch([1, 2, 3, 5, 17, 64, 128, 511, 512])
    with torch.no_grad():
        expected = theirs(ids, mask, segments, output_hidden_states=True).hidden_states
    batch = PackedBatch.from_padded(ids, segments, mask.bool())
    found = TorchEngine(BertModel.from_pretrained(folder), LAYERS)(batch)
    assert len(found) == len(expected) == len(LAYERS)
    for ours, hidden in zip(found, expected, strict=True):
        assert_close(ours, hidden[mask.bool()])


@pytest.mark.parametrize("text", ["w1 w7 w90 w3", ("w5 w6", "w1 w2 w3"), "w4 " * 600])
def test_features_and_c_agree(theirs, folder, text):
    extract = FeatureExtractor.load(folder, device="cpu", engine="torch", precision="fp32")
    found = extract(text, layers=LAYERS, combine="none")
    ids, segments = (
        torch.tensor([values]) for values in (found.encoding.ids, found.encoding.token_type_ids)
    )
    with torch.no_grad():
        expected = theirs(ids, token_type_ids=segments, output_hidden_states=True)
    states = torch.stack(expected.hidden_states, dim=2)[0]
    assert_close(torch.from_numpy(found.features), states)
    assert_close(torch.from_numpy(found.sequence), expected.pooler_output[0])
