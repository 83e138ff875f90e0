"""A trained encoder of another family, all-mpnet-base-v2: vectors and similarities of sentences."""

import warnings

import numpy as np
import pytest
import torch
import transformers
from tests.closeness import assert_close
from tests.tokenizer_folders import TEXTS

from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.models.bert.encoder import BertModel
from bertkit.tokenization.tokenizer import Tokenizer

with warnings.catch_warnings():  # its own imports warn of what is no business of ours
    warnings.simplefilter("ignore")
    sentence_transformers = pytest.importorskip("sentence_transformers")

PAIRS = [
    ("A man is playing a guitar.", "Someone plays an instrument."),
    ("A man is playing a guitar.", "The stock market fell by 3.5 % on Monday."),
    ("How do I reset my password?", "I forgot my password, what can I do?"),
    ("How do I reset my password?", "The café serves naïve façades — déjà vu!"),
    ("It's raining.", " ".join(["It rained all day, and the river rose."] * 60)),
]
SENTENCES = [*dict.fromkeys(text for pair in PAIRS for text in pair), *TEXTS.values()]

SHORT = [number for number, text in enumerate(SENTENCES) if len(text) < 100]


@pytest.fixture(scope="module")
def theirs(mpnet):
    return sentence_transformers.SentenceTransformer(str(mpnet), device="cpu")


@pytest.mark.parametrize("engine", ["torch", "openvino"])
def test_vectors_and_similarities_of_sentences_agree(mpnet, theirs, engine):
    embedder = Embedder.load(mpnet, EmbedderSettings(engine=engine, precision="fp32"))
    expected = theirs.encode(SENTENCES, batch_size=4, show_progress_bar=False)
    found = embedder(SENTENCES)
    assert_close(found, expected)
    places = [[SENTENCES.index(text) for text in pair] for pair in PAIRS]
    similar = [float(np.dot(found[first], found[second])) for first, second in places]
    assert similar[0] > similar[1] + 0.3  # trained weights: paraphrases are alike
    assert similar[2] > similar[3] + 0.3


def test_token_ids_and_hidden_states_agree(mpnet, theirs):
    tokenizer = Tokenizer.load(mpnet)
    batch = tokenizer.encode_batch(SENTENCES, max_length=384)
    ids, mask = torch.from_numpy(batch.input_ids), torch.from_numpy(batch.attention_mask)
    features = theirs.tokenize(SENTENCES)
    assert torch.equal(ids[mask.bool()], features["input_ids"][features["attention_mask"].bool()])
    length = mask[SHORT].sum(dim=1).max()
    ids, mask = ids[SHORT, :length], mask[SHORT, :length]
    with torch.no_grad():
        reference = transformers.MPNetModel.from_pretrained(mpnet).eval()
        expected = reference(input_ids=ids, attention_mask=mask)
        found = BertModel.from_pretrained(mpnet)(ids, attention_mask=mask)
    real = mask.bool()
    assert_close(found.last_hidden_state[real], expected.last_hidden_state[real])
    assert_close(found.pooler_output, expected.pooler_output)
