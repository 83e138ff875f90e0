"""A folder that tells how long its model's texts are is believed by all that read them."""

import json

import pytest
import torch
from tests.unit.inference.small import WORDS, build_model, save_small

from bertkit.base.errors import InputError
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.features import FeatureExtractor
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.folder import MANIFEST_FILE
from bertkit.tokenization.tokenizer import Tokenizer

TOLD = 10
LONG = "the cat saw a dog . " * 3  # 18 tokens


@pytest.fixture
def folder(tmp_path):
    """A model whose positions behind those that were trained would spoil what reads them."""
    model = build_model()
    with torch.no_grad():
        model.encoder.embeddings.position.weight[TOLD:] = 1e4
    model.save_pretrained(tmp_path)
    Tokenizer([*SPECIAL_TOKENS, *WORDS]).save(tmp_path, max_length=TOLD)
    return tmp_path


def test_vectors_are_of_no_more_than_it_tells(folder):
    embed = Embedder.load(folder, device="cpu")
    assert embed.text_encoder.max_length == TOLD
    cut = Embedder.load(folder, EmbedderSettings(max_length=TOLD), device="cpu")
    assert torch.equal(torch.as_tensor(embed(LONG)), torch.as_tensor(cut(LONG)))
    more = Embedder.load(folder, EmbedderSettings(max_length=20), device="cpu")
    assert more.text_encoder.max_length == 20


def test_features_are_of_no_more_than_it_tells(folder):
    extract = FeatureExtractor.load(folder, device="cpu")
    (found,) = extract([LONG])
    assert len(found.encoding) == TOLD
    (found,) = extract([LONG], max_length=18)
    assert len(found.encoding) == 18


def test_longer_texts_are_refused_where_nothing_may_be_cut(folder):
    message = r"takes 10 at a time \(model_max_length of its tokenizer's folder\); shorten it"
    with pytest.raises(InputError, match=message):
        FillMask.load(folder, device="cpu")(f"{LONG} [MASK]")
    with pytest.raises(InputError, match=message):
        NextSentence.load(folder, device="cpu")((LONG, "a dog ."))


def test_a_folder_that_tells_nothing_or_too_much_has_all_its_positions(tmp_path):
    save_small(tmp_path)
    assert FillMask.load(tmp_path, device="cpu").loaded.max_length == 24
    path = tmp_path / "tokenizer_config.json"
    content = json.loads(path.read_text())
    (tmp_path / MANIFEST_FILE).unlink()
    for told in (10**30, 1e30, -1, "10", True):
        path.write_text(json.dumps({**content, "model_max_length": told}))
        assert FillMask.load(tmp_path, device="cpu").loaded.max_length == 24
