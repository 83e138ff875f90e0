"""Projections of vectors to a plane, and a word's nearest neighbors at each layer.

The plane is spanned by the first two principal components: the two-dimensional projection that
keeps the most variance.

Source: Pearson 1901, "On lines and planes of closest fit to systems of points in space".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import InputError, NonFiniteError
from bertkit.inference.embeddings.word_vectors import Neighbors, WordTable, WordVectors
from bertkit.inference.engines.engine import resolve_layers
from bertkit.inference.engines.torch_engine import TorchEngine, as_array
from bertkit.interpret.figures.scatter import Scatter
from bertkit.interpret.inspected_model import InspectedModel

MIN_SPREAD = 1e-12  # norm of the centered points relative to the points; below it is rounding


@dataclass(frozen=True, eq=False)
class Plane:
    """Points projected to their first two principal components.

    Attributes:
        points: the coordinates, centered on the mean; the first axis has the larger variance.
        shares: the share of total variance on each axis, from 0 to 1; both 0 if all points are
            equal, and thus at the origin.
    """

    points: Float[Tensor, "points 2"]
    shares: tuple[float, float]

    def figure(self, title: str, names: Sequence[str]) -> Scatter:
        """Draw the points with their names as a static figure.

        Raises:
            InputError: points and names differ in number.
        """
        return Scatter(title, self.points.tolist(), names, self.shares)


def project(
    vectors: Float[Tensor, "points features"] | Float[np.ndarray, "points features"],
) -> Plane:
    """Project vectors to the plane of their first two principal components.

    The signs of the axes are fixed: on each axis the point farthest from the mean has a positive
    coordinate.

    Args:
        vectors: vectors of any norm, such as from `Embedder.encode`; they aren't scaled.
    """
    if isinstance(vectors, np.ndarray):
        vectors = torch.from_numpy(vectors.astype(np.float64))  # a copy: arrays may be read-only
    rows = torch.as_tensor(vectors).detach().cpu().double()
    if rows.ndim != 2 or not rows.numel():
        raise InputError(f"expected vectors as rows of numbers, got the shape {list(rows.shape)}")
    if not rows.isfinite().all():
        raise NonFiniteError("a vector has an infinity or NaN, and no place on a plane")
    centered = rows - rows.mean(dim=0)
    if centered.norm() <= MIN_SPREAD * rows.norm():
        return Plane(torch.zeros(len(rows), 2), (0.0, 0.0))
    bases, lengths, _ = torch.linalg.svd(centered, full_matrices=False)
    points = torch.zeros(len(rows), 2, dtype=rows.dtype)
    points[:, : len(lengths)] = (bases * lengths)[:, :2]
    farthest = points.gather(0, points.abs().argmax(dim=0, keepdim=True))
    shares: list[float] = [*(lengths**2 / (lengths**2).sum()).tolist(), 0.0]
    return Plane((points * farthest.sign()).float(), (shares[0], shares[1]))


def project_layers(layers: Iterable[Float[Tensor, "points features"]]) -> list[Plane]:
    """Project the same points at each layer, flipping axes to match the layer before.

    The sign of a principal axis is arbitrary. An axis is flipped if its coordinates correlate
    negatively with the previous layer's, so that points can be followed through the layers.
    """
    planes: list[Plane] = []
    for vectors in layers:
        plane = project(vectors)
        if planes:
            before = planes[-1].points
            if before.shape != plane.points.shape:
                raise InputError(f"expected {len(before)} points, got {len(plane.points)}")
            is_opposite = (before * plane.points).sum(dim=0) < 0
            plane = Plane(torch.where(is_opposite, -plane.points, plane.points), plane.shares)
        planes.append(plane)
    return planes


def nearest_by_layer(
    inspected: InspectedModel, word: str, layers: Sequence[int] | None = None, *, top_k: int = 5
) -> list[Neighbors]:
    """Return a word's nearest neighbors, without context, at several layers, by `WordVectors`.

    For each layer above 0 the whole vocabulary passes through the model, which takes a while.

    Args:
        inspected: any model.
        word: a word, or an entry of the vocabulary.
        layers: 0 for the word embeddings, 1 for the first block, -1 for the last; all if None.
        top_k: the number of neighbors.
    """
    loaded, config = inspected.loaded, inspected.model.config
    if layers is None:
        layers = range(config.num_hidden_layers + 1)
    words: torch.Tensor = inspected.model.encoder.embeddings.word.weight
    found = []
    for layer in resolve_layers(layers, config.num_hidden_layers):
        vectors = TorchEngine(inspected.model, [layer]) if layer else as_array(words)
        table = WordTable(vectors, loaded.tokenizer, loaded.max_length)
        found.append(WordVectors(table).nearest(word, top_k=top_k))
    return found
