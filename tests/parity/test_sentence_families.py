"""Sentence encoders and rerankers of each family against sentence-transformers, both ways."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.families import FAMILIES, make_folder
from tests.tokenizer_folders import TEXTS

import bertkit
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.jobs.convert import convert

with warnings.catch_warnings():  # its own imports warn of what is no business of ours
    warnings.simplefilter("ignore")
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

SENTENCES = [*TEXTS.values(), "free", ""]
MAX_TOKENS = 40
QUERY = "Who is born free?"
ENGINES = ["torch", "openvino"]
FAMILY_KINDS = [(family, None) for family in FAMILIES if family != "electra-wide"]
# The multilingual MiniLM and BGE-M3: tokenizers of another kind than the family's own.
FAMILY_KINDS += [("bert", "xlm-roberta"), ("xlm-roberta", "bge-m3")]
every_family = pytest.mark.parametrize(("family", "kind"), FAMILY_KINDS)


def write_sentence_encoder(folder: Path, family: str, kind: str | None, pooling: str) -> Path:
    """A folder as sentence-transformers writes it."""
    encoder = make_folder(folder / "encoder", family, kind=kind)
    transformer = modules.Transformer(str(encoder), max_seq_length=MAX_TOKENS)
    tail = [modules.Pooling(24, pooling), modules.Normalize()]
    model = SentenceTransformer(modules=[transformer, *tail], device="cpu")
    model.save(str(folder / "sentences"), create_model_card=False)
    return folder / "sentences"


def embed(folder: Path) -> np.ndarray:
    model = SentenceTransformer(str(folder), device="cpu")
    vectors: np.ndarray = model.encode(SENTENCES, show_progress_bar=False)
    return vectors


@every_family
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_equal_and_go_through_us_unchanged(family, kind, pooling, tmp_path):
    source = write_sentence_encoder(tmp_path, family, kind, pooling)
    expected = embed(source)
    assert np.ptp(expected, axis=0).max() > 0.1  # the texts differ, so that equal means something
    for engine in ENGINES:
        settings = EmbedderSettings(engine=engine, precision="fp32", device="cpu")
        assert_close(Embedder.load(source, settings)(SENTENCES), expected)
    convert(source, tmp_path / "ours")
    assert_close(embed(tmp_path / "ours"), expected)


# What sentence-transformers writes beside an encoder with a head since its sixth version.
NEW_FILES = ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json")


@every_family
@pytest.mark.parametrize("is_old", [False, True])
def test_a_reranker_scores_as_a_cross_encoder(family, kind, is_old, tmp_path):
    head = "ForSequenceClassification"
    source = make_folder(tmp_path / "theirs", family, head, kind=kind, num_labels=1)
    model = CrossEncoder(str(source), device="cpu", max_length=MAX_TOKENS)
    model.save(str(tmp_path / "saved"))
    for name in NEW_FILES if is_old else ():
        (tmp_path / "saved" / name).unlink()
    expected = predict(model)
    assert len({*expected.tolist()}) > len(SENTENCES) // 2
    convert(tmp_path / "saved", tmp_path / "ours")
    again = CrossEncoder(str(tmp_path / "ours"), device="cpu", max_length=MAX_TOKENS)
    assert_close(predict(again), expected)
    for engine in ENGINES:
        reranker = bertkit.Reranker.load(
            tmp_path / "saved", device="cpu", engine=engine, precision="fp32"
        )
        ranked = reranker.rank(QUERY, SENTENCES)
        found = [one.score for one in sorted(ranked, key=lambda one: one.row)]
        assert_close(found, expected.tolist(), "float32")


def predict(model: CrossEncoder) -> np.ndarray:
    """Logits: a CrossEncoder would give their sigmoids, of which large ones are equal."""
    pairs = [(QUERY, text) for text in SENTENCES]
    scores: np.ndarray = model.predict(pairs, activation_fn=torch.nn.Identity())
    return scores
