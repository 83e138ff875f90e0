"""Where vectors lie: a plane to look at many of them, and a word's neighbors layer by layer.

The plane is that of the two principal components: the flat picture that keeps most of the distances
between the points, of the many dimensions that they have.

Source: Pearson 1901, "On lines and planes of closest fit to systems of points in space".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import InputError, NonFiniteError
from bertkit.embeddings.word_vectors import Neighbors, WordVectors
from bertkit.inference.loading import LoadedModel
from bertkit.interpret.inspected_model import InspectedModel

MIN_SPREAD = 1e-12  # of points around their middle, relative to their lengths; less is rounding


@dataclass(frozen=True, eq=False)
class Plane:
    """Points on the plane that shows most of how they differ.

    Attributes:
        points: where each lies, around the middle of all; the first axis is the longer one.
        shares: what share of all variance each axis shows, from 0 to 1; both 0 where all points are
            equal, and so lie in the middle.
    """

    points: Float[Tensor, "points 2"]
    shares: tuple[float, float]


def project(
    vectors: Float[Tensor, "points features"] | Float[np.ndarray, "points features"],
) -> Plane:
    """Lay vectors on the plane of their two principal components.

    The same vectors always give the same picture: on each axis the point that is farthest from the
    middle lies to the right, or above.

    Args:
        vectors: of any length, such as sentences' from `Embedder.encode`; they aren't scaled.
    """
    if isinstance(vectors, np.ndarray):
        vectors = torch.from_numpy(vectors.astype(np.float64))  # a copy: a file's can't be written
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
    """A plane for each layer of the same points, turned over where that keeps them in their places.

    An axis may point either way. Here it points so that as many points as can be stay on the side
    where the layer before had them, and one can follow them through the layers.
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
    subject: InspectedModel, word: str, layers: Sequence[int] | None = None, *, top_k: int = 5
) -> list[Neighbors]:
    """The neighbors of a word, read alone, at several layers, as `WordVectors` finds them.

    Each layer above 0 sends the whole vocabulary through the model, which takes a while.

    Args:
        subject: any model.
        word: a word, or an entry of the vocabulary.
        layers: 0 for the word embeddings, 1 for the first block, -1 for the last; all if None.
        top_k: how many entries.
    """
    loaded = LoadedModel[Any](subject.model, subject.tokenizer)
    if layers is None:
        layers = range(subject.model.config.num_hidden_layers + 1)
    return [
        WordVectors(loaded, layer=layer, engine="torch").nearest(word, top_k=top_k)
        for layer in layers
    ]
