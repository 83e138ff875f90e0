"""Similarity of two texts is a number, of several a matrix; a file has columns of any task."""

import pytest
from tests.closeness import assert_close, close

import bertkit
from bertkit.api.predictions import TaskColumns
from bertkit.base.errors import SettingsError
from bertkit.tasks.settings import choose_columns
from bertkit.tasks.table import TASKS


def test_similarity_of_two_texts_or_of_all_pairs(model):
    first, second = ["the cat", "a dog saw the hat"], ["a hat", "the cat", "dogs"]
    scores = bertkit.similarity(first, second, model=model)
    assert scores.shape == (2, 3)
    assert scores[0, 1] == close(1, "float32")
    one = bertkit.similarity("the cat", "a hat", model=model)
    assert isinstance(one, float)
    assert one == close(scores[0, 0], "float32")
    among = bertkit.similarity(first, model=model, similarity="euclidean")
    assert_close(among, among.T)
    assert bertkit.similarity("the cat", second, model=model).shape == (1, 3)


def test_columns_are_those_of_all_tasks():
    kinds = TaskColumns, choose_columns(*(entry.settings for entry in TASKS.values()))
    written, known = (
        {name: (info.annotation, info.default) for name, info in kind.model_fields.items()}
        for kind in kinds
    )
    assert written == known


def test_an_embedder_refuses_settings_of_loading(model):
    embedder = bertkit.Embedder.load(model)
    with pytest.raises(SettingsError, match=r"give that to Embedder\.load"):
        bertkit.similarity("a", "b", model=embedder, pooling=("cls",))
    with pytest.raises(SettingsError, match=r"has its device; give that to Embedder\.load"):
        bertkit.embed(["a"], model=embedder, device="cpu")
