"""Predictions of a model's head for a passage: words, next sentence, labels, tags or an answer.

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

from bertkit.base.errors import NonFiniteError
from bertkit.inference.masked_texts import MASK
from bertkit.interpret.inspected_model import (
    AnyBert,
    EncodedText,
    InspectedModel,
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
    """Decisions of one kind about a passage.

    Attributes:
        question: a readable description of the decision.
        about: a readable subject for each decision.
        places: the token position of each decision, from 0; None for the whole passage.
        choices: the names of the possible choices.
        log_probabilities: the natural log probability of each choice.
        said: the index of the predicted choice of each decision: the most likely one, unless the
            task has a threshold or rules of its own.
        answer: the decisions combined into one text, if they form one answer.
    """

    question: str
    about: tuple[str, ...]
    places: tuple[int | None, ...]
    choices: Sequence[str]
    log_probabilities: Float[Tensor, "decisions choices"]
    said: Int[Tensor, " decisions"]
    answer: str | None = None

    @property
    def surprise(self) -> Float[Tensor, ""]:
        """The mean of −log p of the predictions: the loss with the predictions as targets."""
        return -self.log_probabilities.gather(1, self.said[:, None]).mean()

    def probabilities_of(self, said: Int[Tensor, " decisions"]) -> Float[Tensor, " decisions"]:
        """Return the probabilities of given choices, such as another judgment's predictions."""
        return self.log_probabilities.gather(1, said[:, None])[:, 0].exp()


def fills_words(model: AnyBert) -> bool:
    """Return whether a model has a masked-LM head."""
    return isinstance(model, BertForPreTraining | BertForMaskedLM)


def find_words(
    subject: InspectedModel, tokens: Float[Tensor, "tokens hidden"]
) -> Float[Tensor, "tokens words"]:
    """Return the language-modeling head's log probabilities of all words for hidden states."""
    model = subject.model
    assert isinstance(model, BertForPreTraining | BertForMaskedLM | BertLMHeadModel)
    scores = model.score_words(tokens)
    return find_log_probabilities(subject.name, scores, subject.tokenizer)


def judge(
    subject: InspectedModel, passage: EncodedText, states: Sequence[Float[Tensor, "length hidden"]]
) -> tuple[HeadPrediction, ...]:
    """Return the predictions of a model's head for a passage, the most relevant first.

    Args:
        subject: the model.
        passage: the text.
        states: as in `Observation`.
    """
    model, judgments = subject.model, []
    if fills_words(model):
        judgments.append(_judge_words(subject, passage, states[-1]))
    if isinstance(model, BertLMHeadModel):
        judgments.append(_judge_next(subject, passage, states[-1]))
    has_pairs = isinstance(model, BertForPreTraining | BertForNextSentencePrediction)
    if has_pairs and passage.pair is not None:
        is_telling = subject.tokenizer.mask_id not in passage.encoding.ids
        judgments.insert(0 if is_telling else 1, _judge_pair(subject, passage, states[-1]))
    if subject.task is not None and subject.task.name in BY_TASK:
        scores = head_scores(subject, passage, states)
        found = BY_TASK[subject.task.name](subject.task, passage, scores)
        judgments += filter(None, [found])
    return tuple(judgments)


def head_scores(
    subject: InspectedModel, passage: EncodedText, states: Sequence[Float[Tensor, "length hidden"]]
) -> Scores:
    """Return a fine-tuned head's scores for hidden states, in float32 or higher precision."""
    model = subject.model
    assert isinstance(model, FineTunedBert)
    tokens = torch.cat([states[layer] for layer in model.head_layers], dim=1)
    scores = model.head_scores(tokens, passage.pack().to(tokens.device))
    _check_finite(subject, scores)
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def _check_finite(subject: InspectedModel, scores: Scores) -> None:
    """Raise a `NonFiniteError` if a score isn't finite."""
    if not scores.isfinite().all():
        raise NonFiniteError(
            f"the head of {subject.name} gives scores that aren't finite; see `bertkit inspect`"
        )


def _judge_words(
    subject: InspectedModel, passage: EncodedText, states: Float[Tensor, "length hidden"]
) -> HeadPrediction:
    """Predict the word at each [MASK]; without any [MASK], at every visible token."""
    ids, mask_id = passage.encoding.ids, subject.tokenizer.mask_id
    masked = [place for place, id_ in enumerate(ids) if id_ == mask_id]
    places = masked or [place for place, word in enumerate(passage.words) if word >= 0]
    logarithms = find_words(subject, states[places])
    return HeadPrediction(
        question=f"which word stands at each {MASK if masked else 'place'}",
        about=tuple(passage.tokens[place] for place in places),
        places=tuple(places),
        choices=subject.tokenizer.vocabulary,
        log_probabilities=logarithms,
        said=logarithms.detach().argmax(dim=-1),
    )


def _judge_next(
    subject: InspectedModel, passage: EncodedText, states: Float[Tensor, "length hidden"]
) -> HeadPrediction:
    """Predict the word after each token except the last, [SEP]."""
    places = range(len(passage.tokens) - 1)
    logarithms = find_words(subject, states[:-1])
    return HeadPrediction(
        question="which word comes behind each token",
        about=tuple(passage.tokens[:-1]),
        places=tuple(places),
        choices=subject.tokenizer.vocabulary,
        log_probabilities=logarithms,
        said=logarithms.detach().argmax(dim=-1),
    )


def _judge_pair(
    subject: InspectedModel, passage: EncodedText, states: Float[Tensor, "length hidden"]
) -> HeadPrediction:
    model = subject.model
    assert isinstance(model, BertForPreTraining | BertForNextSentencePrediction)
    pooled = model.pooler(states, passage.pack().to(states.device))
    question = "whether the second text follows the first"
    scores = model.next_sentence(pooled).float()
    _check_finite(subject, scores)
    return _judge_whole(question, passage, FOLLOWS, scores.log_softmax(dim=-1))


def _judge_labels(task: Task[Any, Any], passage: EncodedText, scores: Scores) -> HeadPrediction:
    """Predict the passage's label, or for multi-label tasks whether each label applies."""
    scores = scores / task.temperature
    if not task.settings.multi_label:
        logarithms = scores.log_softmax(dim=-1)
        return _judge_whole("which label it has", passage, task.labels, logarithms)
    logarithms = torch.stack([F.logsigmoid(-scores[0]), F.logsigmoid(scores[0])], dim=1)
    threshold = task.numbers.get(THRESHOLD, task.settings.threshold)
    return HeadPrediction(
        question="which labels it has",
        about=task.labels,
        places=(None,) * len(task.labels),
        choices=NO_YES,
        log_probabilities=logarithms,
        said=(logarithms.detach()[:, 1].exp() >= threshold).long(),
    )


def _judge_whole(
    question: str,
    passage: EncodedText,
    choices: Sequence[str],
    logarithms: Float[Tensor, "1 choices"],
) -> HeadPrediction:
    """Make a prediction with a single decision about the whole passage."""
    about = "the text" if passage.pair is None else "both texts"
    said = logarithms.detach().argmax(dim=-1)
    return HeadPrediction(question, (about,), (None,), choices, logarithms, said)


def _judge_tags(
    task: Task[Any, Any], passage: EncodedText, scores: Scores
) -> HeadPrediction | None:
    """Predict the tag of each word from its first piece."""
    words = (-1, *passage.words)
    firsts = [place for place, (last, word) in enumerate(pairwise(words)) if word not in (-1, last)]
    logarithms = scores[firsts].log_softmax(dim=-1)
    return HeadPrediction(
        question="which tag each word has",
        about=tuple(_find_word(passage, place) for place in firsts),
        places=tuple(firsts),
        choices=task.labels,
        log_probabilities=logarithms,
        said=logarithms.detach().argmax(dim=-1),
    )


def _find_word(passage: EncodedText, first: int) -> str:
    """Return the text of the word whose first piece is at position `first`."""
    pieces = [place for place, word in enumerate(passage.words) if word == passage.words[first]]
    encoding = passage.encoding
    text = passage.pair if encoding.token_type_ids[first] else passage.text
    return (text or "")[encoding.offsets[first][0] : encoding.offsets[pieces[-1]][1]]


def _judge_answer(
    task: Task[Any, Any], passage: EncodedText, scores: Scores
) -> HeadPrediction | None:
    """Predict the span in the second text that answers the first; None without a pair."""
    if passage.pair is None:
        return None
    encoding, logarithms = passage.encoding, scores.log_softmax(dim=0).T
    num_before = encoding.token_type_ids.index(1)
    offsets = np.array(encoding.offsets[num_before:-1], dtype=np.int32)
    parts, owners = (range(len(offsets)),), np.zeros(len(offsets), dtype=np.int32)
    windows = Windows(parts, owners, offsets, num_before)
    example = AnswerExample(passage.text, passage.pair)
    found = task.decode(example, Encoded((), alignment=windows), scores.detach().cpu().numpy())
    tokens = None if found.start is None else find_tokens(offsets, (found.start, found.stop))
    places = (0, 0) if tokens is None else tuple(token + num_before for token in tokens)
    return HeadPrediction(
        question="where the answer begins and ends",
        about=("begins", "ends"),
        places=places,
        choices=passage.tokens,
        log_probabilities=logarithms,
        said=torch.tensor(places, device=scores.device),
        answer=found.text or NO_ANSWER,
    )


# Tasks with a choice; tasks whose heads output a number are in `outcome.NUMBERS`. Extractive
# summarization (extract) has no entry: it scores each sentence by its own [CLS]; here is only one.
BY_TASK: dict[str, Callable[[Task[Any, Any], EncodedText, Scores], HeadPrediction | None]] = {
    "classify": _judge_labels,
    "tag": _judge_tags,
    "answer": _judge_answer,
}
