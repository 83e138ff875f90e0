"""The geometry view: token vectors projected at each layer, and a word in several contexts."""

import math
from dataclasses import asdict

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.progress import show_progress
from bertkit.interpret.ablation import ablate, importance_by_ablation, importance_by_gradient
from bertkit.interpret.contexts import WordInContexts
from bertkit.interpret.geometry import Plane, project_layers
from bertkit.interpret.head_predictions import Outcome, compare, find_outcome, round_digits, to_json
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.observation import EncodedText
from bertkit.interpret.views.view import View, ViewInputs, paragraphs
from bertkit.reports.interactive import JsonObject

NUM_NEIGHBORS = 5
GEOMETRY_LEGEND = paragraphs(
    """
    Each point is a token, placed by its vector after a layer: tokens that the model treats alike
    are near each other. Drag the slider from the embeddings to the last layer.

    The picture projects the vectors to the plane that keeps the most variance (the first two
    principal components), and says what share of the variance it shows. Points that are far
    apart in the picture are far apart in the full space; points that are close may still differ in
    a direction that isn't shown. So the list beside it names the nearest tokens in the full space,
    by cosine: 1 is the same direction, 0 is orthogonal. Green lines lead to them.

    A solid line joins the pieces of one word, a dashed one the occurrences of the same token. Blue
    is the first text, orange the second. Each layer has its own projection, so the axes of
    different layers aren't comparable; a projection is only mirrored to keep tokens near their
    places in the layer before.

    To try: use a text that has a word twice, in two senses, and drag the slider from the
    embeddings, where only the positions of the two differ, to the last layer.
    """
)


def collect_geometry(inputs: ViewInputs) -> JsonObject:
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
        "contexts": None if inputs.contexts is None else _describe(inputs.contexts),
    }


def _plane_to_json(plane: Plane) -> JsonObject:
    """Convert a plane to data."""
    # Four significant digits are more than a screen shows.
    points = [[float(f"{number:.4g}") for number in point] for point in plane.points.tolist()]
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


def _describe(contexts: WordInContexts) -> JsonObject:
    """Convert a word in its contexts to data."""
    baseline = contexts.different_words.tolist()
    return {
        "word": contexts.word,
        "places": [
            [text[:start], text[start:stop], text[stop:]]
            for occurrence in contexts.occurrences
            for text, (start, stop) in [(occurrence.encoded.text, occurrence.span)]
        ],
        "cosines": [
            [[round(cosine, 3) for cosine in row] for row in layer]
            for layer in contexts.cosines.tolist()
        ],
        "mean": [round(cosine, 3) for cosine in contexts.self_similarity.tolist()],
        "different": [None if math.isnan(cosine) else round(cosine, 3) for cosine in baseline],
        "planes": [_plane_to_json(plane) for plane in contexts.planes],
    }


GEOMETRY = View(
    name="geometry",
    title="Geometry",
    legend=GEOMETRY_LEGEND,
    collect=collect_geometry,
    supports=lambda inputs: not inputs.has_two_texts and max(inputs.observation.encoded.words) >= 0,
)


IMPORTANCE_LEGEND = paragraphs(
    """
    Each cell is a head: its color says how much the model's prediction for this text changes when
    that head alone is switched off. Click or tap a cell to see what the head attends to.

    If the model predicts something, such as a word, a label or a tag, the number is the change of
    the prediction's probability. Orange means that the prediction is less likely without the head:
    the head supports it. Blue means that it is more likely without the head: the head opposes it.
    The background color means no change; the strongest color is the largest change of all heads,
    which may be small, so read the scale. For a model without a prediction head, the number is the
    change of the mean vector of the text, as a cosine distance: 0 is no change, 1 a right angle.

    “Gradient” shows how much the loss would change if a head were scaled down a little. It takes
    one pass for all heads and measures small changes; switching a head off is a large change, so
    the two maps may differ.

    Few heads matter much on a single text, and others can compensate for a missing one. So the
    values hold for this text and this prediction, and not for the head in general. The text is read
    whole, as shown; where a fine-tuned model truncates long texts or splits them into windows, its
    own prediction may differ.

    To try: switch off the most important heads with --without and see whether the prediction
    changes.
    """
)


def collect_importance(inputs: ViewInputs) -> JsonObject:
    """Return the model's prediction and the importance of each head for it.

    "kind" is the measure: "probability", "number" or "vector". "ablation", the change without each
    head, and "gradient" are layers × heads; "gradient" is null without a prediction. "says" is
    as in `to_json`, "whole" the same with all heads, "change" from "whole" to "says"; both null if
    no head is off.
    """
    inspected, encoded = inputs.inspected, inputs.observation.encoded
    assert isinstance(inspected, InspectedModel)  # `supports` excludes other models

    def loss() -> Float[Tensor, ""]:
        found = find_outcome(inspected, encoded).loss
        assert found is not None  # every pass has a loss, or none has
        return found

    with ablate(inspected.model, inputs.observation.without):
        with torch.inference_mode():
            now = find_outcome(inspected, encoded)
            ablation = _ablate_each(inspected, encoded, now)
        gradient = None if now.loss is None else importance_by_gradient(inspected.model, [loss])
    with torch.inference_mode():
        whole = find_outcome(inspected, encoded) if inputs.observation.without else None
    number = "vector" if now.number is None else "number"
    return {
        "kind": "probability" if now.predictions else number,
        "ablation": _to_rows(ablation),
        "gradient": _to_rows(gradient),
        "says": to_json(now, whole),
        "whole": None if whole is None else to_json(whole),
        "change": None
        if whole is None
        else {
            name: None if value is None else round_digits(value)
            for name, value in asdict(compare(whole, now)).items()
        },
    }


def _ablate_each(
    inspected: InspectedModel, encoded: EncodedText, now: Outcome
) -> Float[Tensor, "layers heads"]:
    """Return the change without each head, by one pass per head and one for the whole model."""
    config = inspected.model.config
    num_passes = config.num_hidden_layers * config.num_attention_heads + 1
    with show_progress("heads switched off", num_passes) as progress:

        def measure() -> float:
            change = compare(now, find_outcome(inspected, encoded)).main
            progress.advance(1)
            return change

        return importance_by_ablation(inspected.model, measure)


def _to_rows(values: Float[Tensor, "layers heads"] | None) -> list[list[float]] | None:
    return None if values is None else [list(map(round_digits, row)) for row in values.tolist()]


IMPORTANCE = View(
    name="importance",
    title="Importance",
    legend=IMPORTANCE_LEGEND,
    collect=collect_importance,
    supports=lambda inputs: isinstance(inputs.inspected, InspectedModel),
)
