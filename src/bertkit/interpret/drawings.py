"""Static figures of one head, or of means of heads."""

import torch

from bertkit.base.errors import InputError, SettingsError
from bertkit.interpret.ablation import HeadName, check_heads
from bertkit.interpret.figures.alignment_figure import AlignmentFigure
from bertkit.interpret.figures.attention_figure import MAX_TOKENS, AttentionFigure
from bertkit.interpret.views.view import ViewInputs


def draw_heads(
    inputs: ViewInputs, title: str, layer: int, head: int, focus: int | None
) -> AttentionFigure:
    """Draw one head's attention, or only that of a token, which is counted from 0."""
    observation = inputs.observation
    tokens, others = observation.encoded.tokens, observation.columns.tokens
    check_heads([HeadName(layer, head)], observation.config)
    longest = max(len(tokens), len(others))
    if longest > MAX_TOKENS:
        raise InputError(
            f"a figure has room for {MAX_TOKENS} tokens, and the text has {longest}; shorten it,"
            " or use the page"
        )
    weights: list[list[float]] = observation.layers[layer - 1].weights[head - 1].tolist()
    if focus is not None and observation.predicted is not None and observation.attended is not None:
        chosen = inputs.inspected.tokenizer.vocabulary[observation.predicted.ids[focus]]
        title += f", after “{tokens[focus]}”, predicting “{chosen}”"
    attended = None if observation.attended is None else others
    return AttentionFigure(title, tokens, weights, focus, attended_tokens=attended)


def draw_alignment(
    inputs: ViewInputs, title: str, layer: int | None, head: int | None
) -> AlignmentFigure:
    """Draw attention from one text to another; arguments and errors as in `AttentionView`."""
    observation = inputs.observation
    if observation.attended is None or observation.predicted is None:
        raise SettingsError(
            "an alignment needs attention from one text to another, and this is self-attention of"
            f" {inputs.inspected.name}; choose another attention, or a model that writes texts"
        )
    check_heads(
        [HeadName(1 if layer is None else layer, 1 if head is None else head)], observation.config
    )
    chosen = observation.layers if layer is None else [observation.layers[layer - 1]]
    weights = torch.stack([heads.weights.float().cpu() for heads in chosen]).mean(dim=0)
    shares = weights.mean(dim=0) if head is None else weights[head - 1]
    vocabulary = inputs.inspected.tokenizer.vocabulary
    written = [vocabulary[id_] for id_ in observation.predicted.ids]
    return AlignmentFigure(title, written, observation.attended.tokens, shares.tolist())
