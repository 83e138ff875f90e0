"""A plane keeps what it can of the distances, and is the same each time."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from tests.closeness import assert_close, close

from bertkit.base.errors import InputError, NonFiniteError, SettingsError
from bertkit.inference.embeddings.word_vectors import WordVectors
from bertkit.interpret.geometry import nearest_by_layer, project, project_layers


def random_vectors(num_points=9, features=6):
    return torch.randn(num_points, features, generator=torch.Generator().manual_seed(0))


def test_points_and_shares_are_those_of_scikit_learn():
    vectors = random_vectors()
    reference = PCA(2).fit(vectors.double().numpy())
    plane = project(vectors)
    assert torch.equal(project(vectors.numpy()).points, plane.points)
    assert_close(plane.shares, reference.explained_variance_ratio_)
    expected = reference.transform(vectors.double().numpy())
    assert_close(np.abs(plane.points.numpy()), np.abs(expected), "float32")


def test_the_farthest_point_of_each_axis_lies_on_the_positive_side():
    vectors = random_vectors()
    plane, mirrored = project(vectors), project(-vectors)
    for points in (plane.points, mirrored.points):
        farthest = points.gather(0, points.abs().argmax(dim=0, keepdim=True))
        assert (farthest > 0).all()
    assert_close(mirrored.points, plane.points)


def test_points_that_lie_on_a_plane_keep_their_distances():
    flat = torch.zeros(5, 7)
    flat[:, [1, 4]] = random_vectors(5, 2) + 3
    plane = project(flat)
    assert_close(torch.cdist(plane.points, plane.points), torch.cdist(flat, flat))
    assert sum(plane.shares) == close(1.0, "float32")


@pytest.mark.parametrize("num_points", [1, 2, 7])
def test_equal_points_lie_in_the_middle(num_points):
    plane = project(torch.full((num_points, 3), 0.1))
    assert plane.points.tolist() == [[0.0, 0.0]] * num_points
    assert plane.shares == (0.0, 0.0)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (2, 2, 2)])
def test_what_are_no_rows_of_numbers_is_refused(shape):
    with pytest.raises(InputError, match="rows of numbers"):
        project(torch.zeros(shape))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_has_no_place_is_refused(value):
    with pytest.raises(NonFiniteError, match="no place"):
        project(torch.tensor([[0.0, 1.0], [value, 2.0]]))
    with pytest.raises(InputError, match="expected 9 points, got 4"):
        project_layers([random_vectors(), random_vectors(4)])


def test_layers_keep_points_on_their_sides():
    first, second = torch.tensor([[-3.0], [2.0], [1.0]]), torch.tensor([[-2.9], [3.0], [-0.1]])
    assert_close(project(second).points[:, :1], second)  # 3 is the farthest
    planes = project_layers([first, second, first])
    for plane, expected in zip(planes, (-first, -second, -first), strict=True):
        assert_close(plane.points[:, :1], expected)
        assert plane.shares == (1.0, 0.0)


def test_neighbors_are_those_of_each_layer_or_of_named_ones(inspected, small_folder):
    found = nearest_by_layer(inspected, "cat", top_k=3)
    assert [neighborhood.layer for neighborhood in found] == [0, 1, 2]
    for neighborhood in found:
        alone = WordVectors.load(
            small_folder, layer=neighborhood.layer, engine="torch", precision="fp32"
        )
        assert neighborhood == alone.nearest("cat", top_k=3)
    assert len({neighborhood.neighbors for neighborhood in found}) == 3
    assert [found.layer for found in nearest_by_layer(inspected, "cat", [-1, 0])] == [2, 0]
    with pytest.raises(SettingsError, match="no layer 3"):
        nearest_by_layer(inspected, "cat", [3])
