"""The geometry view: token vectors projected at each layer, and a word in several contexts."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.interpret.contexts import Occurrence, WordInContexts
from bertkit.interpret.geometry import Plane, project_layers
from bertkit.interpret.views.view import View, ViewInputs, paragraphs

NUM_NEIGHBORS = 5
LEGEND = paragraphs(
    """
    After every layer a BERT has a vector of some hundred numbers for each token. Vectors are points
    in a space of as many dimensions; tokens that the model treats alike are near each other.

    The picture projects them to the plane that keeps the most variance (the first two principal
    components), and says what share of the variance it shows. Points that are far apart in the
    picture are far apart in the full space; points that are close may still differ in a direction
    that isn't shown. So the list beside it names the nearest tokens in the full space, by cosine: 1
    is the same direction, 0 is orthogonal. Green lines lead to them.

    A solid line joins the pieces of one word, a dashed one the occurrences of the same token. Blue
    is the first text, orange the second. Each layer has its own projection, so the axes of
    different layers aren't comparable; a projection is only mirrored to keep tokens near their
    places in the layer before.

    To try: use a text that has a word twice, in two senses, and drag the slider from the
    embeddings, where only the positions of the two differ, to the last layer.
    """
)


def collect_geometry(inputs: ViewInputs) -> dict[str, Any]:
    """Return planes with and without special tokens, and nearest tokens, for every layer."""
    observation = inputs.observation
    words = [token for token, word in enumerate(observation.encoded.words) if word >= 0]
    states = [state.float().cpu() for state in observation.states]
    return {
        "words": words,
        "wordPlanes": [
            _plane_to_json(plane) for plane in project_layers(state[words] for state in states)
        ],
        "planes": [_plane_to_json(plane) for plane in project_layers(states)],
        "nearest": [_nearest(state, words) for state in states],
        "contexts": inputs.contexts and _describe(inputs.contexts),
    }


def _plane_to_json(plane: Plane) -> dict[str, Any]:
    """Convert a plane to data."""
    points = [[_round(coordinate) for coordinate in point] for point in plane.points.tolist()]
    return {"points": points, "shares": [round(share, 4) for share in plane.shares]}


def _nearest(
    state: Float[Tensor, "length hidden"], words: list[int]
) -> list[list[tuple[int, float]]]:
    """Return the nearest non-special tokens of each token, with their cosines."""
    units = torch.nn.functional.normalize(state, dim=-1)
    cosines = units @ units[words].T
    cosines[words, range(len(words))] = -math.inf  # not the token itself
    found = cosines.topk(min(NUM_NEIGHBORS, len(words)), dim=-1)
    return [
        [(words[number], round(cosine, 3)) for number, cosine in pairs if cosine > -math.inf]
        for pairs in map(zip, found.indices.tolist(), found.values.tolist())
    ]


def _describe(contexts: WordInContexts) -> dict[str, Any]:
    """Convert a word in its contexts to data."""
    baseline = contexts.different_words.tolist()
    return {
        "word": contexts.word,
        "places": [_quote(occurrence) for occurrence in contexts.occurrences],
        "cosines": [
            [[round(cosine, 3) for cosine in row] for row in layer]
            for layer in contexts.cosines.tolist()
        ],
        "mean": [round(cosine, 3) for cosine in contexts.self_similarity.tolist()],
        "different": [None if math.isnan(cosine) else round(cosine, 3) for cosine in baseline],
        "planes": [_plane_to_json(plane) for plane in contexts.planes],
    }


def _quote(occurrence: Occurrence) -> list[str]:
    """Return the text before a word, the word, and the text after it."""
    text, (start, stop) = occurrence.encoded.text, occurrence.span
    return [text[:start], text[start:stop], text[stop:]]


def _round(coordinate: float) -> float:
    """Round to four significant digits, which is more than a screen shows."""
    return float(f"{coordinate:.4g}")


GEOMETRY = View(
    name="geometry",
    title="Geometry",
    legend=LEGEND,
    collect=collect_geometry,
    supports=lambda inputs: (
        not inputs.is_cross_attention and max(inputs.observation.encoded.words) >= 0
    ),
)
