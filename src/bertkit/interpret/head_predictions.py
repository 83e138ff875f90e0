"""Predictions of a model's head for a text: words, pairs, labels, tags or an answer.

Every kind of head yields the same structure: decisions, each with a probability for each choice.
The scores come from the model's own head; this module turns them into named probabilities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.inference.engines.torch_engine import check_finite_tensor, find_device
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.observation import EncodedText, find_log_probabilities
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.heads import PairScoringBert, WordScoringBert
from bertkit.reports.interactive import JsonObject
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.answer.scoring import Windows, find_tokens
from bertkit.tasks.batch import Encoded
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.task import AnyTask

NO_YES = ("no", "yes")
NO_ANSWER = "no answer"

Scores = Float[Tensor, "rows ..."]


@dataclass(frozen=True, eq=False)
class HeadPrediction:
    """The decisions of a head that answer one question about a text.

    Each predicted choice is the most likely, unless the task has a threshold or rules of its own.
    """

    question: str  # a readable description of the decision
    about: tuple[str, ...]  # what each decision is about
    positions: tuple[int | None, ...]  # token positions, from 0; None for the whole text
    choices: Sequence[str]  # their names
    log_probabilities: Float[Tensor, "decisions choices"]
    predicted: Int[Tensor, " decisions"]  # indices of `choices`
    answer: str | None = None  # the decisions combined into one text, if they form one answer

    @property
    def loss(self) -> Float[Tensor, ""]:
        """The mean of −log p of the predictions: the loss with the predictions as targets."""
        return -self.log_probabilities.gather(1, self.predicted[:, None]).mean()

    def probabilities_of(self, predicted: Int[Tensor, " decisions"]) -> Float[Tensor, " decisions"]:
        """Return the probabilities of given choices, such as another pass's predictions."""
        return self.log_probabilities.gather(1, predicted[:, None])[:, 0].exp()


def find_words(
    inspected: InspectedModel, tokens: Float[Tensor, "tokens hidden"]
) -> Float[Tensor, "tokens words"]:
    """Return the language-modeling head's log probabilities of all words for hidden states."""
    assert isinstance(inspected.model, WordScoringBert)
    scores = inspected.model.score_words(tokens)
    return find_log_probabilities(inspected.name, scores, inspected.tokenizer)


@dataclass(frozen=True, eq=False)
class HeadReader:
    """A model's head on the hidden states of a text: of the embeddings, then of each layer."""

    inspected: InspectedModel
    encoded: EncodedText
    states: Sequence[Float[Tensor, "length hidden"]]

    def predict(self) -> tuple[HeadPrediction, ...]:
        """Return the predictions for the text, the most relevant first."""
        model, encoded, predictions = self.inspected.model, self.encoded, list[HeadPrediction]()
        mask_id = self.inspected.tokenizer.mask_id
        has_masks = self.inspected.fills_words and mask_id in encoded.encoding.ids
        if isinstance(model, WordScoringBert):
            predictions.append(self._predict_words(model.word_offset))
        if isinstance(model, PairScoringBert) and encoded.pair is not None:
            batch, (question, choices) = encoded.pack(), model.pair_question
            scores = model.score_pairs(self.states[-1], batch.to(self.states[-1].device)).float()
            check_finite_tensor(scores, f"the scores of the head of {self.inspected.name}")
            pair = self._predict_whole(question, choices, scores.log_softmax(dim=-1))
            predictions.insert(1 if has_masks else 0, pair)
        task = self.inspected.task
        if task is not None and task.name in BY_TASK:
            predictions += filter(None, [BY_TASK[task.name](self, task, self.scores())])
        return tuple(predictions)

    def scores(self) -> Scores:
        """Return a fine-tuned head's scores, in float32 or higher precision."""
        model = self.inspected.model
        assert isinstance(model, FineTunedBert)
        tokens = torch.cat([self.states[layer] for layer in model.head_layers], dim=1)
        scores = model.head_scores(tokens, self.encoded.pack().to(tokens.device))
        check_finite_tensor(scores, f"the scores of the head of {self.inspected.name}")
        return scores.to(torch.promote_types(scores.dtype, torch.float32))

    def _predict_words(self, offset: int) -> HeadPrediction:
        """Predict the words that stand so many tokens after others; 0 is at each token itself."""
        ids, mask_id = self.encoded.encoding.ids, self.inspected.tokenizer.mask_id
        positions: Sequence[int]
        if offset:
            positions, question = range(len(ids) - offset), "the word after each token"
        elif positions := [position for position, id_ in enumerate(ids) if id_ == mask_id]:
            question = f"the word at each {self.inspected.tokenizer.mask}"
        else:
            positions = [position for position, word in enumerate(self.encoded.words) if word >= 0]
            question = "the word at each position"
        about = tuple(self.encoded.tokens[position] for position in positions)
        logarithms = find_words(self.inspected, self.states[-1][positions])
        choices = self.inspected.tokenizer.descriptions
        return _choose_likeliest(question, about, tuple(positions), choices, logarithms)

    def predict_labels(self, task: AnyTask, scores: Scores) -> HeadPrediction:
        """Predict the text's label, or for multi-label tasks whether each label applies."""
        assert isinstance(task, Classify)
        scores = scores / task.temperature
        if not task.settings.multi_label:
            return self._predict_whole("the label", task.labels, scores.log_softmax(dim=-1))
        logarithms = torch.stack([F.logsigmoid(-scores[0]), F.logsigmoid(scores[0])], dim=1)
        return HeadPrediction(
            question="the labels",
            about=task.labels,
            positions=(None,) * len(task.labels),
            choices=NO_YES,
            log_probabilities=logarithms,
            predicted=(logarithms.detach()[:, 1].exp() >= task.threshold).long(),
        )

    def _predict_whole(
        self, question: str, choices: Sequence[str], logarithms: Float[Tensor, "1 choices"]
    ) -> HeadPrediction:
        """Make a prediction with a single decision about the whole text."""
        about = "the text" if self.encoded.pair is None else "both texts"
        return _choose_likeliest(question, (about,), (None,), choices, logarithms)

    def predict_tags(self, task: AnyTask, scores: Scores) -> HeadPrediction:
        """Predict the tag of each word from its first piece."""
        encoded, encoding = self.encoded, self.encoded.encoding
        pairs = enumerate(pairwise((-1, *encoded.words)))
        firsts = [position for position, (last, word) in pairs if word not in (-1, last)]
        lasts = {word: position for position, word in enumerate(encoded.words)}
        about = []
        for first in firsts:
            text = encoded.pair if encoded.sides[first] else encoded.text
            stop = encoding.offsets[lasts[encoded.words[first]]][1]
            about.append((text or "")[encoding.offsets[first][0] : stop])
        logarithms, question = scores[firsts].log_softmax(dim=-1), "the tag of each word"
        return _choose_likeliest(question, tuple(about), tuple(firsts), task.labels, logarithms)

    def predict_answer(self, task: AnyTask, scores: Scores) -> HeadPrediction | None:
        """Predict the span in the second text that answers the first; None without a pair."""
        encoded, encoding = self.encoded, self.encoded.encoding
        if encoded.pair is None:
            return None
        num_before = encoded.sides.index(1)
        offsets = np.array(encoding.offsets[num_before:-1], dtype=np.int32)
        parts, owners = (range(len(offsets)),), np.zeros(len(offsets), dtype=np.int32)
        windows = Windows(parts, owners, offsets, num_before)
        logits = scores.detach().float().cpu().numpy()
        example = AnswerExample(encoded.text, encoded.pair)
        found = task.decode(example, Encoded((), alignment=windows), logits)
        tokens = None if found.start is None else find_tokens(offsets, (found.start, found.stop))
        positions = (0, 0) if tokens is None else tuple(token + num_before for token in tokens)
        return HeadPrediction(
            question="the start and the end of the answer",
            about=("start", "end"),
            positions=positions,
            choices=encoded.tokens,
            log_probabilities=scores.log_softmax(dim=0).T,
            predicted=torch.tensor(positions, device=scores.device),
            answer=found.text or NO_ANSWER,
        )


def _choose_likeliest(
    question: str,
    about: tuple[str, ...],
    positions: tuple[int | None, ...],
    choices: Sequence[str],
    logarithms: Float[Tensor, "decisions choices"],
) -> HeadPrediction:
    predicted = logarithms.detach().argmax(dim=-1)
    return HeadPrediction(question, about, positions, choices, logarithms, predicted)


BY_TASK: dict[str, Callable[[HeadReader, AnyTask, Scores], HeadPrediction | None]]
BY_TASK = {
    "classify": HeadReader.predict_labels,
    "tag": HeadReader.predict_tags,
    "answer": HeadReader.predict_answer,
}
NUMBER_TASKS = {"regress", "choose", "rerank"}  # whose head gives a text one number


TOP_CHOICES = 5
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Outcome:
    """The output of a model on a text.

    A plain encoder makes no predictions.
    """

    tokens: Float[Tensor, "length hidden"]  # the last hidden state of each
    predictions: tuple[HeadPrediction, ...] = ()  # the most relevant first
    number: Float[Tensor, ""] | None = None  # of a regression, or the score of a choice

    @property
    def vector(self) -> Float[Tensor, " hidden"]:
        """The mean of the tokens' vectors."""
        return self.tokens.mean(dim=0)

    @property
    def loss(self) -> Float[Tensor, ""] | None:
        """The scalar to differentiate by head gates; None if there is none (a plain encoder).

        It is −log p of the model's own prediction, or the number itself.
        """
        return self.predictions[0].loss if self.predictions else self.number


@dataclass(frozen=True)
class Change:
    """The difference between an outcome and an earlier one, each later minus earlier.

    The probability is of the earlier predictions, averaged over the decisions of the first one.
    """

    probability: float | None  # from −1 to 1; None if nothing was predicted
    number: float | None  # None if there is no number
    vector: float  # the cosine distance of the mean vectors, from 0 to 2
    tokens: float  # the mean distance of a token's two vectors, relative to the earlier norm

    @property
    def main(self) -> float:
        """The change of probability if there is one, else of the number, else of the vector."""
        known = (value for value in (self.probability, self.number) if value is not None)
        return next(known, self.vector)


def find_outcome(inspected: InspectedModel, encoded: EncodedText) -> Outcome:
    """Run the model once; gradients are recorded if the caller enables them."""
    batch = encoded.pack().to(find_device(inspected.model))
    states = list(inspected.model.encoder.hidden_states(batch))
    check_finite_tensor(states[-1], f"the hidden states of {inspected.name}")
    number, head = None, HeadReader(inspected, encoded, states)
    if inspected.task is not None and inspected.task.name in NUMBER_TASKS:
        number = head.scores().flatten()[0]
    return Outcome(states[-1].float(), head.predict(), number)


def compare(before: Outcome, after: Outcome) -> Change:
    """Compare an outcome with an earlier one of the same text."""
    probability = number = None
    if before.predictions:
        predicted = before.predictions[0].predicted
        earlier, later = (one.predictions[0].probabilities_of(predicted) for one in (before, after))
        probability = float((later - earlier).mean())
    if before.number is not None and after.number is not None:
        number = float(after.number - before.number)
    lengths = before.tokens.norm(dim=-1).clamp_min(torch.finfo(before.tokens.dtype).tiny)
    moved = (after.tokens - before.tokens).norm(dim=-1) / lengths
    # 1 − cosine, from the distance of the unit vectors: exact for nearly equal vectors
    first, second = (F.normalize(one.vector.double(), dim=0) for one in (before, after))
    turned = float((first - second).square().sum() / 2)
    return Change(probability, number, turned, float(moved.mean()))


def to_json(outcome: Outcome, before: Outcome | None = None) -> JsonObject:
    """Convert an outcome to plain data, with the probability of the earlier one's predictions."""
    earlier: Sequence[HeadPrediction | None] = (
        before.predictions if before else (None,) * len(outcome.predictions)
    )
    pairs = zip(outcome.predictions, earlier, strict=True)
    return {
        "judgments": [_prediction_to_json(prediction, first) for prediction, first in pairs],
        "number": None if outcome.number is None else round_digits(float(outcome.number)),
    }


def _prediction_to_json(prediction: HeadPrediction, before: HeadPrediction | None) -> JsonObject:
    shares = prediction.log_probabilities.detach().exp()
    best = shares.topk(min(TOP_CHOICES, shares.shape[1]))
    rows = zip(
        prediction.about,
        prediction.positions,
        prediction.predicted.tolist(),
        prediction.probabilities_of(prediction.predicted).tolist(),
        prediction.probabilities_of((before or prediction).predicted).tolist(),
        zip(best.indices.tolist(), best.values.tolist(), strict=True),
        strict=True,
    )
    decisions = [
        {
            "about": about,
            "token": position,
            "said": prediction.choices[predicted],
            "probability": round_digits(probability),
            "kept": round_digits(kept),  # probability of the earlier prediction
            "likeliest": [
                [prediction.choices[choice], round_digits(share)]
                for choice, share in zip(*likeliest, strict=True)
            ],
        }
        for about, position, predicted, probability, kept, likeliest in rows
    ]
    return {"question": prediction.question, "answer": prediction.answer, "decisions": decisions}


def round_digits(value: float) -> float:
    """Round to a few significant digits, so that pages stay small."""
    return float(f"{value:.{DIGITS}g}")
