"""Similarity of two texts is a number, of several a matrix."""

import numpy as np
import pytest
from tests.unit.inference.small import save_small

import bertkit
from bertkit.base.errors import SettingsError


def test_similarity_of_two_texts_or_of_all_pairs(tmp_path):
    save_small(tmp_path / "m")
    first, second = ["the cat", "a dog saw the hat"], ["a hat", "the cat", "dogs"]
    scores = bertkit.similarity(first, second, model=tmp_path / "m")
    assert scores.shape == (2, 3)
    assert scores[0, 1] == pytest.approx(1, abs=1e-6)
    one = bertkit.similarity("the cat", "a hat", model=tmp_path / "m")
    assert isinstance(one, float)
    assert one == pytest.approx(scores[0, 0], abs=1e-6)
    among = bertkit.similarity(first, model=tmp_path / "m", similarity="euclidean")
    np.testing.assert_allclose(among, among.T, atol=1e-6)
    assert bertkit.similarity("the cat", second, model=tmp_path / "m").shape == (1, 3)


def test_an_embedder_refuses_settings_of_loading(tmp_path):
    save_small(tmp_path / "m")
    embedder = bertkit.Embedder.load(tmp_path / "m")
    with pytest.raises(SettingsError, match=r"give that to Embedder\.load"):
        bertkit.similarity("a", "b", model=embedder, pooling=("cls",))
    with pytest.raises(SettingsError, match=r"has its device; give that to Embedder\.load"):
        bertkit.embed(["a"], model=embedder, device="cpu")
