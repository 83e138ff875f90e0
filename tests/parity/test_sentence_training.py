"""Trained encoders in sentence-transformers, and its own in our training, with equal vectors."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small import save_small
from tests.unit.recipes.finetune.small import open_job

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.checkpoints.torch_tensors import lazy_tensor
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.sentence_bert import SentenceBert
from bertkit.nn.packing import PackedBatch
from bertkit.recipes.finetune.run import Sources
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.embed import EmbeddingSettings

with warnings.catch_warnings():  # its own imports warn of what is no business of ours
    warnings.simplefilter("ignore")
    sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = ["the cat saw a dog", "a hat .", "dog", "the the the the the the the the the the"]
SETTINGS = FineTuneSettings(device="cpu", precision="fp32")
PROMPTS = {"query": "the ", "document": "a "}


def write_rows(path):
    """Pairs whose texts are all different."""
    words = ("cat", "dog", "hat", "saw", "lost")
    rows = [f"{one} {other} {one},the {one} {other}" for one in words for other in words]
    path.write_text("\n".join(["query,passage", *rows]))
    return path


def describe(modes, tail):
    """A folder's modules: pooling, and what is behind it."""
    weight = torch.randn(6, 8 * len(modes), generator=torch.Generator().manual_seed(0)) / 3
    dense = Dense(lazy_tensor(weight), lazy_tensor(torch.full((6,), 0.1)), "tanh")
    found = {"dense": dense, "normalize": Normalize()}
    return SentenceModel((Pooling(8, modes), *(found[name] for name in tail)), 16)


def save_start(folder, modes, tail):
    """A random encoder with modules."""
    save_small(folder)
    BertModel.from_pretrained(folder).save_pretrained(folder)  # without its other heads
    write_sentence_model(folder, describe(modes, tail))
    return folder


def encode(folder, texts, **options):
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    return model.encode(texts, **options)


@pytest.mark.parametrize(
    ("modes", "tail"),
    [
        (("mean",), ()),
        (("cls",), ("normalize",)),
        (("max",), ("dense", "normalize")),
        (("cls", "mean"), ("dense",)),
    ],
)
def test_a_trained_encoder_has_the_same_vectors_there(tmp_path, modes, tail):
    save_start(tmp_path / "start", modes, tail)
    rows = write_rows(tmp_path / "train.csv")
    sources = Sources("embed", str(tmp_path / "start"), str(rows))
    job = open_job(sources, EmbeddingSettings(max_length=12, prompts=PROMPTS), SETTINGS)
    with torch.no_grad():  # as if they were trained
        for parameter in job.model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    job.save_model(tmp_path / "model")
    theirs = encode(tmp_path / "model", TEXTS)
    assert theirs.shape == (4, 6 if "dense" in tail else 8 * len(modes))
    ours = Embedder.load(tmp_path / "model", engine="torch", precision="fp32")
    assert_close(ours(TEXTS), theirs, "float32")
    assert theirs != close(encode(tmp_path / "start", TEXTS), within=1e-3)
    asked = encode(tmp_path / "model", TEXTS, prompt_name="query")
    assert_close(ours(TEXTS, prompt_name="query"), asked, "float32")


def test_vectors_in_training_are_those_of_their_model(tmp_path):
    save_start(tmp_path / "start", ("mean", "max"), ("dense", "normalize"))
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "start"), device="cpu")
    theirs.save(str(tmp_path / "theirs"))
    model = SentenceBert.from_pretrained(tmp_path / "theirs")
    ids = [theirs.tokenizer(text)["input_ids"][:16] for text in TEXTS]
    found = model.scores(PackedBatch.from_single(ids))
    features = theirs.preprocess(TEXTS) if hasattr(theirs, "preprocess") else theirs.tokenize(TEXTS)
    expected = theirs(features)["sentence_embedding"]
    assert_close(found.detach().numpy(), expected.detach().numpy(), "float32")
    for vectors in (found, expected):
        vectors.pow(3).sum().backward()
    layer = dict(theirs.named_parameters())
    for name, parameter in model.encoder.named_parameters():
        if name == "embeddings.word_embeddings.weight":
            key = next(key for key in layer if key.endswith("word_embeddings.weight"))
            assert_close(parameter.grad.numpy(), layer[key].grad.numpy(), "float32")
    [dense] = [module for key, module in theirs.named_modules() if key.endswith("linear")]
    assert_close(model.dense[0].weight.grad.numpy(), dense.weight.grad.numpy(), "float32")


def test_what_is_not_trained_is_an_error(tmp_path):
    save_start(tmp_path / "start", ("weightedmean",), ())
    with pytest.raises(CheckpointError, match="pools weightedmean, and bertkit trains cls, mean"):
        SentenceBert.from_pretrained(tmp_path / "start")


@pytest.mark.parametrize(
    ("prompts", "default"),
    [({"query": "the ", "passage": "a "}, None), ({"text": "hat "}, "text"), ({}, None)],
)
def test_queries_and_passages_get_the_prompts_of_the_training(tmp_path, prompts, default):
    save_start(tmp_path / "start", ("mean",), ())
    described = replace(describe(("mean",), ()), prompts=prompts, default_prompt=default)
    write_sentence_model(tmp_path / "start", described)
    sources = Sources("embed", str(tmp_path / "start"), str(write_rows(tmp_path / "train.csv")))
    job = open_job(sources, EmbeddingSettings(), SETTINGS)
    job.save_model(tmp_path / "model")
    examples, trained = (
        job.data.dev.examples,
        job.held_out_logits(range(len(job.data.dev.examples))),
    )
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    asked = theirs.encode_query([one.query for one in examples])
    assert_close(np.stack([own[0] for own in trained]), asked, "float32")
    found = theirs.encode_document([one.passages[0] for one in examples])
    assert_close(np.stack([own[1] for own in trained]), found, "float32")
