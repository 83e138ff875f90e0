"""What computes the vectors of an index: prompts, lengths, and the model that its file names."""

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_sentence_model, save_small

from bertkit.base.errors import SettingsError
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.retrieval.index import Index
from bertkit.retrieval.index_model import IndexModel
from bertkit.retrieval.settings import IndexSettings

TEXTS = ["the cat", "a dog saw the hat", "the dog"]


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    """A sentence-transformers folder with prompts and a measure of its own."""
    folder = tmp_path_factory.mktemp("models") / "prompted"
    save_small(folder)
    torch.manual_seed(1)
    sentences = build_sentence_model(torch.nn.Linear(8, 5))
    sentences.prompts.update({"passage": "the ", "query": "a "})
    write_sentence_model(folder, sentences)
    return folder


def test_the_file_knows_model_settings_and_precision(model, tmp_path, monkeypatch):
    path = tmp_path / "x.bertkit"
    with Index(path, model=str(model), pooling=("cls",), engine="torch") as index:
        index.add(TEXTS)
        expected = index.search("the cat", by="vectors")
        assert expected[0].text == "the cat"
        assert_close(expected[0].score, 1.0, "float32")
    monkeypatch.chdir(tmp_path)
    with Index(path, engine="torch") as again:
        assert [hit.id for hit in again.search("the cat", by="vectors")] == [
            hit.id for hit in expected
        ]
        assert again.model.identity["vector"] == index.model.identity["vector"]
        assert again.add(["another hat"]).added == 1
    for other in ({"pooling": ("mean",)}, {"max_length": 9}):
        with pytest.raises(SettingsError, match="with other settings"):
            Index(path, engine="torch", **other).search("the cat")


def test_prompts_of_queries_and_of_passages_are_the_models(prompted):
    loaded = IndexModel.load(prompted, IndexSettings(engine="torch"))
    plain = Embedder.load(prompted, engine="torch", prompt="")
    assert_close(loaded.embed_passages(["cat"]), plain(["the cat"]), "float32")
    assert_close(loaded.embed_queries(["cat"]), plain(["a cat"]), "float32")
    assert loaded.identity["prompt"] == "the "
    asked = IndexSettings(engine="torch", passage_prompt="", prompt_name="passage")
    loaded = IndexModel.load(prompted, asked)
    assert_close(loaded.embed_passages(["cat"]), plain(["cat"]), "float32")
    assert_close(loaded.embed_queries(["cat"]), plain(["the cat"]), "float32")


def test_passages_are_as_long_as_the_model_reads(model):
    loaded = IndexModel.load(model, IndexSettings(engine="torch", max_length=9))
    assert (loaded.passage_tokens, loaded.measure("the cat saw")) == (7, 3)
    prompt = IndexSettings(engine="torch", max_length=9, passage_prompt="the ")
    assert IndexModel.load(model, prompt).passage_tokens == 6
    short = IndexSettings(engine="torch", max_length=9, passage_tokens=4)
    assert IndexModel.load(model, short).passage_tokens == 4
    index = Index(model=model, settings=short)
    assert index.add(["the cat saw a dog . the dog lost the hat ."]).passages > 1


def test_a_loaded_embedder_keeps_its_settings(model, tmp_path):
    embedder = Embedder.load(model, engine="torch", pooling=("cls",))
    index = Index(tmp_path / "x.bertkit", model=embedder)
    index.add(TEXTS)
    assert Index(index.path, model=embedder).search("the cat")[0].text == "the cat"
    assert Index(index.path).search("the cat")[0].text == "the cat"
    with pytest.raises(SettingsError, match="has its normalize"):
        Index(model=embedder, normalize=True).add(TEXTS)
