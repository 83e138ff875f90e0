"""What sentence-transformers writes we read, and what we write it loads, with equal embeddings."""

import itertools
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from transformers import AutoTokenizer, BertConfig, BertModel

from bertkit.checkpoints.huggingface import write_huggingface
from bertkit.checkpoints.sentence_modules import ACTIVATIONS, POOLING_FLAGS, Dense, Pooling
from bertkit.checkpoints.sentence_transformers import (
    SentenceModel,
    open_sentence_transformers,
    write_sentence_model,
)
from bertkit.checkpoints.torch_tensors import read_tensor
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.jobs.convert import convert
from bertkit.jobs.export import export
from bertkit.models.open_model import OpenModel
from bertkit.tokenization.settings import UNCASED, TokenizerSettings
from bertkit.tokenization.tokenizer import Tokenizer

with warnings.catch_warnings():  # its own imports warn of what is no business of ours
    warnings.simplefilter("ignore")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"abcdefghij",
    "the",
    "cat",
    "sat",
    "##s",
]
TEXTS = ["the cat sat", "Cats", "a b c d e f g h i j the cats sat the cats sat on a b c d", "j"]
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")
MODES = tuple(POOLING_FLAGS.values())


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny encoder with random weights, none of them zero, and its tokenizer."""
    folder = tmp_path_factory.mktemp("encoder")
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    model = BertModel(config)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    Tokenizer(VOCABULARY, UNCASED).save(folder)
    return folder


def build(encoder: Path, folder: Path, *tail: torch.nn.Module, **settings: object) -> Path:
    """A folder as sentence-transformers writes it."""
    model = sentence_transformers.SentenceTransformer(
        modules=[modules.Transformer(str(encoder)), *tail], device="cpu", **settings
    )
    model.save(str(folder), create_model_card=False)
    return folder


def dense(in_features: int, activation: torch.nn.Module, *, bias: bool = True) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return modules.Dense(in_features, 3, bias=bias, activation_function=activation)


def embed(folder: Path, **options: object) -> np.ndarray:
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    return model.encode(TEXTS, show_progress_bar=False, **options)


def rewrite(source: Path, folder: Path) -> SentenceModel:
    """Read a folder and write all of it, tokenizer files copied."""
    checkpoint = open_sentence_transformers(source)
    write_huggingface(folder, checkpoint.config, checkpoint.tensors)
    model = OpenModel.open(source).sentences
    write_sentence_model(folder, model)
    for name in TOKENIZER_FILES:
        if (checkpoint.folder / name).exists():
            shutil.copy(checkpoint.folder / name, folder)
    return model


def assert_same_embeddings(first: Path, second: Path, **options: object) -> None:
    """Theirs of the first folder, theirs of the second, and ours."""
    expected = embed(first, **options)
    assert np.ptp(expected, axis=0).max() > 1e-3  # the texts differ, so that equal means something
    assert_close(embed(second, **options), expected)
    ours = Embedder.load(second, EmbedderSettings(engine="torch", precision="fp32", **options))
    assert_close(ours(TEXTS), expected)


@pytest.mark.parametrize(
    ("mode", "is_scaled", "is_dense"),
    [
        pytest.param(*case, marks=[] if all(case[1:]) else pytest.mark.exhaustive)
        for case in itertools.product(MODES, (False, True), (False, True))
    ],
)
def test_each_pooling_goes_through_us_unchanged(encoder, tmp_path, mode, is_scaled, is_dense):
    tail = [modules.Pooling(8, mode)]
    tail += [dense(8, torch.nn.Tanh())] if is_dense else []
    tail += [modules.Normalize()] if is_scaled else []
    source = build(encoder, tmp_path / "theirs", *tail)
    model = rewrite(source, tmp_path / "ours")
    assert model.modules[0] == Pooling(8, (mode,))
    assert len(model.modules) == 1 + is_scaled + is_dense
    assert model.max_seq_length == 16
    assert_same_embeddings(source, tmp_path / "ours")


@pytest.mark.parametrize("modes", [("cls", "mean"), ("mean", "cls"), MODES, MODES[::-1]])
def test_joined_poolings_keep_their_order(encoder, tmp_path, modes):
    source = build(encoder, tmp_path / "theirs", modules.Pooling(8, modes))
    model = rewrite(source, tmp_path / "ours")
    assert model.modules == (Pooling(8, modes),)
    assert_same_embeddings(source, tmp_path / "ours")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_activation_and_the_weights_are_kept(encoder, tmp_path, name):
    activation = getattr(torch.nn, ACTIVATIONS[name].rpartition(".")[2])()
    layer = dense(8, activation, bias=name != "relu")
    source = build(encoder, tmp_path / "theirs", modules.Pooling(8), layer)
    ours = rewrite(source, tmp_path / "ours").modules[1]
    assert isinstance(ours, Dense)
    assert ours.activation == name
    assert torch.equal(read_tensor(ours.weight), layer.linear.weight)
    assert (ours.bias is None) == (name == "relu")
    assert ours.bias is None or torch.equal(read_tensor(ours.bias), layer.linear.bias)
    assert_same_embeddings(source, tmp_path / "ours")


def test_settings_of_the_whole_come_back(encoder, tmp_path):
    source = build(
        encoder,
        tmp_path / "theirs",
        modules.Pooling(8, "mean", include_prompt=False),
        prompts={"query": "the cat ", "passage": "j "},
        default_prompt_name="query",
        similarity_fn_name="dot",
        truncate_dim=5,
    )
    model = rewrite(source, tmp_path / "ours")
    assert model.modules == (Pooling(8, ("mean",), include_prompt=False),)
    assert {name: model.prompts[name] for name in ("query", "passage")} == {
        "query": "the cat ",
        "passage": "j ",
    }
    assert (model.default_prompt, model.similarity, model.truncate_dimension) == ("query", "dot", 5)
    assert set(model.other) == {"__version__"}
    loaded = sentence_transformers.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert loaded.prompts["passage"] == "j "
    assert (loaded.default_prompt_name, loaded.similarity_fn_name) == ("query", "dot")
    assert embed(tmp_path / "ours").shape == (len(TEXTS), 5)
    assert_same_embeddings(source, tmp_path / "ours")
    assert_same_embeddings(source, tmp_path / "ours", prompt_name="passage")


@pytest.mark.parametrize("is_scaled", [False, True])
def test_choices_are_those_of_encode(encoder, tmp_path, is_scaled):
    source = build(encoder, tmp_path / "theirs", modules.Pooling(8))
    options = {"prompt": "the cat ", "truncate_dim": 3, "normalize_embeddings": is_scaled}
    chosen = {"prompt": "the cat ", "dimensions": 3, "normalize": is_scaled or None}
    ours = Embedder.load(source, EmbedderSettings(engine="torch", precision="fp32", **chosen))
    assert_close(ours(TEXTS), embed(source, **options))


def test_all_minilm_goes_through_us_unchanged(minilm, tmp_path):
    model = rewrite(minilm, tmp_path)
    assert [type(module).__name__ for module in model.modules] == ["Pooling", "Normalize"]
    assert (model.modules[0], model.max_seq_length) == (Pooling(384, ("mean",)), 256)
    assert_same_embeddings(minilm, tmp_path)


@pytest.mark.parametrize("job", [convert, export])
def test_other_programs_cut_and_lowercase_as_the_modules_say(encoder, tmp_path, job):
    source = tmp_path / "source"
    shutil.copytree(encoder, source)
    cased = TokenizerSettings(lowercase=False, strip_accents=False)
    Tokenizer(VOCABULARY, cased).save(source, max_length=16)
    model = SentenceModel((Pooling(8, ("mean",)),), max_seq_length=7, lowercase=True)
    write_sentence_model(source, model)
    job(source, tmp_path / "copy")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "copy")
    texts = ["The CAT Sat", "A b C d E f G h I j the cats sat"]
    inputs = tokenizer(texts, truncation=True, padding=True, return_tensors="pt")
    weighted = BertModel.from_pretrained(encoder)(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    theirs = (weighted * mask).sum(dim=1) / mask.sum(dim=1)
    for folder in (source, tmp_path / "copy"):
        ours = Embedder.load(folder, EmbedderSettings(device="cpu", precision="fp32"))
        assert_close(ours(texts), theirs.detach())


def test_what_a_foreign_tokenizer_does_not_do_is_noted(encoder, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(encoder, source)
    (source / "tokenizer_manifest.json").unlink()
    engine = json.loads((source / "tokenizer.json").read_text())
    engine["added_tokens"].append({"content": "new", "id": len(VOCABULARY)})
    (source / "tokenizer.json").write_text(json.dumps(engine))
    model = SentenceModel((Pooling(8, ("mean",)),), max_seq_length=7, lowercase=True)
    write_sentence_model(source, model)
    _, *notes = convert(source, tmp_path / "copy").notes
    assert notes == [
        "other programs must lowercase texts: the tokenizer doesn't",
        "other programs must truncate texts to 7 tokens: the tokenizer doesn't",
    ]
