"""The hidden states of every layer, and C, against transformers."""

import pytest
import torch
from tests.closeness import assert_close
from tests.parity.agreement import SIZES, randomize
from transformers import BertConfig as TheirConfig
from transformers import BertModel as TheirModel

from bertkit.inference.embeddings.features import FeatureExtractor
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
