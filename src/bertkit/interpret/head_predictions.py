"""Predictions of a model's head for a text: words, next sentence, labels, tags or an answer.

Every kind of head yields the same structure: decisions, each with a probability for each choice.
The scores come from the model's own head; this module turns them into named probabilities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.inference.masked_texts import MASK
from bertkit.interpret.inspected_model import (
    AnyBert,
    EncodedText,
    InspectedModel,
    check_finite,
    find_log_probabilities,
)
from bertkit.models.bert.causal import BertLMHeadModel
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.heads import (
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
)
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.answer.windows import Windows, find_tokens
from bertkit.tasks.batch import Encoded
from bertkit.tasks.classify.decoding import THRESHOLD
from bertkit.tasks.task import Task

FOLLOWS = ("follows", "doesn't follow")  # in the order of the next-sentence head's scores
NO_YES = ("no", "yes")
NO_ANSWER = "no answer"

Scores = Float[Tensor, "rows ..."]


@dataclass(frozen=True, eq=False)
class HeadPrediction:
    """Decisions of one kind about a text.

    Attributes:
        question: a readable description of the decision.
        about: a readable name of what each decision is about.
        places: the token position of each decision, from 0; None for the whole text.
        choices: the names of the possible choices.
        log_probabilities: the natural log probability of each choice.
        predicted: the index of the predicted choice of each decision: the most likely, unless the
            task has a threshold or rules of its own.
        answer: the decisions combined into one text, if they form one answer.
    """

    question: str
    about: tuple[str, ...]
    places: tuple[int | None, ...]
    choices: Sequence[str]
    log_probabilities: Float[Tensor, "decisions choices"]
    predicted: Int[Tensor, " decisions"]
    answer: str | None = None

    @property
    def loss(self) -> Float[Tensor, ""]:
        """The mean of −log p of the predictions: the loss with the predictions as targets."""
        return -self.log_probabilities.gather(1, self.predicted[:, None]).mean()

    def probabilities_of(self, predicted: Int[Tensor, " decisions"]) -> Float[Tensor, " decisions"]:
        """Return the probabilities of given choices, such as another pass's predictions."""
        return self.log_probabilities.gather(1, predicted[:, None])[:, 0].exp()


def fills_words(model: AnyBert) -> bool:
    """Return whether a model has a masked-LM head."""
    return isinstance(model, BertForPreTraining | BertForMaskedLM)


def find_words(
    inspected: InspectedModel, tokens: Float[Tensor, "tokens hidden"]
) -> Float[Tensor, "tokens words"]:
    """Return the language-modeling head's log probabilities of all words for hidden states."""
    model = inspected.model
    assert isinstance(model, BertForPreTraining | BertForMaskedLM | BertLMHeadModel)
    scores = model.score_words(tokens)
    return find_log_probabilities(inspected.name, scores, inspected.tokenizer)


def predict_with_heads(
    inspected: InspectedModel,
    encoded: EncodedText,
    states: Sequence[Float[Tensor, "length hidden"]],
) -> tuple[HeadPrediction, ...]:
    """Return the predictions of a model's head for a text, the most relevant first.

    Args:
        inspected: the model.
        encoded: the text.
        states: as in `Observation`.
    """
    model, predictions = inspected.model, list[HeadPrediction]()
    places: Sequence[int]
    ids, mask_id = encoded.encoding.ids, inspected.tokenizer.mask_id
    masked = [place for place, id_ in enumerate(ids) if id_ == mask_id]
    if fills_words(model):
        places = masked or [place for place, word in enumerate(encoded.words) if word >= 0]
        question = f"the word at each {MASK if masked else 'position'}"
        predictions.append(_predict_words(inspected, encoded, states[-1], places, question))
    if isinstance(model, BertLMHeadModel):
        places, question = range(len(ids) - 1), "the word after each token"
        predictions.append(_predict_words(inspected, encoded, states[-1], places, question))
    has_pairs = isinstance(model, BertForPreTraining | BertForNextSentencePrediction)
    if has_pairs and encoded.pair is not None:
        predictions.insert(1 if masked else 0, _predict_pair(inspected, encoded, states[-1]))
    task = inspected.task
    if task is not None and task.head_output in BY_OUTPUT:
        scores = head_scores(inspected, encoded, states)
        predictions += filter(None, [BY_OUTPUT[task.head_output](task, encoded, scores)])
    return tuple(predictions)


def head_scores(
    inspected: InspectedModel,
    encoded: EncodedText,
    states: Sequence[Float[Tensor, "length hidden"]],
) -> Scores:
    """Return a fine-tuned head's scores for hidden states, in float32 or higher precision."""
    model = inspected.model
    assert isinstance(model, FineTunedBert)
    tokens = torch.cat([states[layer] for layer in model.head_layers], dim=1)
    scores = model.head_scores(tokens, encoded.pack().to(tokens.device))
    check_finite(scores, f"the head of {inspected.name} gives scores")
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def _predict_words(
    inspected: InspectedModel,
    encoded: EncodedText,
    states: Float[Tensor, "length hidden"],
    places: Sequence[int],
    question: str,
) -> HeadPrediction:
    """Predict a word at some positions."""
    about = tuple(encoded.tokens[place] for place in places)
    choices, logarithms = inspected.tokenizer.vocabulary, find_words(inspected, states[places])
    return _choose_likeliest(question, about, tuple(places), choices, logarithms)


def _choose_likeliest(
    question: str,
    about: tuple[str, ...],
    places: tuple[int | None, ...],
    choices: Sequence[str],
    logarithms: Float[Tensor, "decisions choices"],
) -> HeadPrediction:
    predicted = logarithms.detach().argmax(dim=-1)
    return HeadPrediction(question, about, places, choices, logarithms, predicted)


def _predict_pair(
    inspected: InspectedModel, encoded: EncodedText, states: Float[Tensor, "length hidden"]
) -> HeadPrediction:
    model = inspected.model
    assert isinstance(model, BertForPreTraining | BertForNextSentencePrediction)
    pooled = model.pooler(states, encoded.pack().to(states.device))
    question = "whether the second text follows the first"
    scores = model.next_sentence(pooled).float()
    check_finite(scores, f"the head of {inspected.name} gives scores")
    return _predict_whole(question, encoded, FOLLOWS, scores.log_softmax(dim=-1))


def _predict_labels(task: Task[Any, Any], encoded: EncodedText, scores: Scores) -> HeadPrediction:
    """Predict the text's label, or for multi-label tasks whether each label applies."""
    scores = scores / task.temperature
    if not task.settings.multi_label:
        logarithms = scores.log_softmax(dim=-1)
        return _predict_whole("the label", encoded, task.labels, logarithms)
    logarithms = torch.stack([F.logsigmoid(-scores[0]), F.logsigmoid(scores[0])], dim=1)
    threshold = task.numbers.get(THRESHOLD, task.settings.threshold)
    return HeadPrediction(
        question="the labels",
        about=task.labels,
        places=(None,) * len(task.labels),
        choices=NO_YES,
        log_probabilities=logarithms,
        predicted=(logarithms.detach()[:, 1].exp() >= threshold).long(),
    )


def _predict_whole(
    question: str,
    encoded: EncodedText,
    choices: Sequence[str],
    logarithms: Float[Tensor, "1 choices"],
) -> HeadPrediction:
    """Make a prediction with a single decision about the whole text."""
    about = "the text" if encoded.pair is None else "both texts"
    return _choose_likeliest(question, (about,), (None,), choices, logarithms)


def _predict_tags(
    task: Task[Any, Any], encoded: EncodedText, scores: Scores
) -> HeadPrediction | None:
    """Predict the tag of each word from its first piece."""
    words = (-1, *encoded.words)
    firsts = [place for place, (last, word) in enumerate(pairwise(words)) if word not in (-1, last)]
    logarithms = scores[firsts].log_softmax(dim=-1)
    about = tuple(_find_word(encoded, place) for place in firsts)
    return _choose_likeliest("the tag of each word", about, tuple(firsts), task.labels, logarithms)


def _find_word(encoded: EncodedText, first: int) -> str:
    """Return the text of the word whose first piece is at position `first`."""
    pieces = [place for place, word in enumerate(encoded.words) if word == encoded.words[first]]
    encoding = encoded.encoding
    text = encoded.pair if encoding.token_type_ids[first] else encoded.text
    return (text or "")[encoding.offsets[first][0] : encoding.offsets[pieces[-1]][1]]


def _predict_answer(
    task: Task[Any, Any], encoded: EncodedText, scores: Scores
) -> HeadPrediction | None:
    """Predict the span in the second text that answers the first; None without a pair."""
    if encoded.pair is None:
        return None
    encoding, logarithms = encoded.encoding, scores.log_softmax(dim=0).T
    num_before = encoding.token_type_ids.index(1)
    offsets = np.array(encoding.offsets[num_before:-1], dtype=np.int32)
    parts, owners = (range(len(offsets)),), np.zeros(len(offsets), dtype=np.int32)
    windows = Windows(parts, owners, offsets, num_before)
    example = AnswerExample(encoded.text, encoded.pair)
    found = task.decode(
        example, Encoded((), alignment=windows), scores.detach().float().cpu().numpy()
    )
    tokens = None if found.start is None else find_tokens(offsets, (found.start, found.stop))
    places = (0, 0) if tokens is None else tuple(token + num_before for token in tokens)
    return HeadPrediction(
        question="the start and the end of the answer",
        about=("start", "end"),
        places=places,
        choices=encoded.tokens,
        log_probabilities=logarithms,
        predicted=torch.tensor(places, device=scores.device),
        answer=found.text or NO_ANSWER,
    )


BY_OUTPUT: dict[str | None, Callable[[Task[Any, Any], EncodedText, Scores], HeadPrediction | None]]
BY_OUTPUT = {"labels": _predict_labels, "tags": _predict_tags, "span": _predict_answer}
