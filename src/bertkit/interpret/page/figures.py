"""Static figures of attention."""

import torch

from bertkit.base.errors import InputError, SettingsError
from bertkit.interpret.head_names import HeadName, check_heads
from bertkit.interpret.inspected_model import EncodedText
from bertkit.interpret.views.view import ViewInputs
from bertkit.reports.figures.alignment_figure import AlignmentFigure
from bertkit.reports.figures.attention_figure import MAX_TOKENS, AttentionFigure

MAX_LISTED_TOKENS = 40


def draw_heads(
    inputs: ViewInputs, title: str, layer: int, head: int, token: str | None
) -> AttentionFigure:
    """Draw one head's attention; arguments and errors as in `AttentionView.figure`."""
    observation = inputs.observation
    encoded, attended = observation.encoded, observation.attended
    check_heads([HeadName(layer, head)], observation.config)
    longest = max(len(encoded.tokens), len((attended or encoded).tokens))
    if longest > MAX_TOKENS:
        raise InputError(
            f"a figure has room for {MAX_TOKENS} tokens, and the text has {longest}; shorten it,"
            " or use the page"
        )
    weights: list[list[float]] = observation.layers[layer - 1].weights[head - 1].tolist()
    focus = None if token is None else find_token(encoded, token)
    if focus is not None and observation.next_words is not None and attended is not None:
        chosen = inputs.inspected.tokenizer.vocabulary[observation.next_words.ids[focus]]
        title += f", after “{encoded.tokens[focus]}”, predicting “{chosen}”"
    attended_tokens = None if attended is None else attended.tokens
    return AttentionFigure(title, encoded.tokens, weights, focus, attended_tokens=attended_tokens)


def draw_alignment(
    inputs: ViewInputs, title: str, layer: int | None, head: int | None
) -> AlignmentFigure:
    """Draw cross-attention as a grid; arguments and errors as in `AttentionView.alignment`."""
    observation = inputs.observation
    if observation.attended is None or observation.next_words is None:
        raise SettingsError(
            "an alignment needs cross-attention, and this is self-attention of"
            f" {inputs.inspected.name}; choose another attention or an encoder-decoder"
        )
    named = HeadName(*(1 if each is None else each for each in (layer, head)))
    check_heads([named], observation.config)
    chosen = observation.layers if layer is None else [observation.layers[layer - 1]]
    weights = torch.stack([one.weights.float().cpu() for one in chosen]).mean(dim=0)
    shares = weights.mean(dim=0) if head is None else weights[head - 1]
    vocabulary = inputs.inspected.tokenizer.vocabulary
    written = [vocabulary[id_] for id_ in observation.next_words.ids]
    return AlignmentFigure(title, written, observation.attended.tokens, shares.tolist())


def find_token(encoded: EncodedText, token: str) -> int:
    """Return the position, from 0, of a token given by its text or its number from 1."""
    tokens = encoded.tokens
    if token in tokens:
        return tokens.index(token)
    if token.isdecimal() and len(token) < 8 and 1 <= int(token) <= len(tokens):
        return int(token) - 1
    more = " …" if len(tokens) > MAX_LISTED_TOKENS else ""
    raise InputError(
        f"there is no token {token!r:.40}; the tokens are"
        f" {' '.join(tokens[:MAX_LISTED_TOKENS])}{more}"
    )
