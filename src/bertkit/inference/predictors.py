"""Typed predictors, one for each task."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, overload

from bertkit.base.settings import validate
from bertkit.inference.predictor import Predictor
from bertkit.tasks.answer.decoding import Answer
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.choose.choice import Choice
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.settings import ClassifyAnswers
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress.examples import RegressExample
from bertkit.tasks.regress.task import Regress, Regression
from bertkit.tasks.tag.decoding import Tagging
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import Tag


class Classifier(Predictor[str | tuple[str, str], ClassifyExample, Classification]):
    """Classifies texts, or pairs of texts.

    A call with a text or a tuple of two returns a `Classification`; a call with a list, a list.

    Examples:
        >>> classify = Classifier.load("sentiment/")  # doctest: +SKIP
        >>> classify("a gripping film").label  # doctest: +SKIP
        'positive'
        >>> [one.probability for one in classify(["a film", "dull"])]  # doctest: +SKIP
        [0.71, 0.98]
        >>> classify("a gripping film", top_k=2).probabilities  # doctest: +SKIP
        {'positive': 0.93, 'neutral': 0.05}
    """

    task_kind: ClassVar = Classify

    @overload  # a text is a sequence of texts, too: the first that fits is meant
    def __call__(  # type: ignore[overload-overlap]
        self, inputs: str | tuple[str, str], *, top_k: int | None = None
    ) -> Classification: ...

    @overload
    def __call__(
        self, inputs: Sequence[str | tuple[str, str]], *, top_k: int | None = None
    ) -> list[Classification]: ...

    def __call__(
        self,
        inputs: str | tuple[str, str] | Sequence[str | tuple[str, str]],
        *,
        top_k: int | None = None,
    ) -> Classification | list[Classification]:
        """Classify one input, or several.

        Args:
            inputs: a text, a tuple of two, or a list or another iterable of several.
            top_k: give the probabilities of the likeliest labels only, best first.

        Raises:
            SettingsError: `top_k` is below 1.
        """
        if top_k is None:
            return super().__call__(inputs)
        answers = validate(ClassifyAnswers, {"top_k": top_k}, "the classifier")
        return super(Classifier, self.giving(answers)).__call__(inputs)


class Regressor(Predictor[str | tuple[str, str], RegressExample, Regression]):
    """Predicts a number for texts, or pairs of texts.

    A call with a text or a tuple of two returns a `Regression`; a call with a list, a list.

    Examples:
        >>> compare = Regressor.load("similarity/")  # doctest: +SKIP
        >>> compare(("A plane takes off.", "An air plane is taking off.")).value  # doctest: +SKIP
        4.83
    """

    task_kind: ClassVar = Regress


class Tagger(Predictor[str | tuple[str, ...], TagExample, Tagging]):
    """Tags the words of texts, and finds entities.

    A call with a text or a tuple of its words returns a `Tagging`; a call with a list, a list.

    Examples:
        >>> tag = Tagger.load("names/")  # doctest: +SKIP
        >>> tagging = tag("Ada Lovelace lived in London.")  # doctest: +SKIP
        >>> [(one.type, one.text) for one in tagging.entities]  # doctest: +SKIP
        [('person', 'Ada Lovelace'), ('location', 'London')]
    """

    task_kind: ClassVar = Tag


class Answerer(Predictor[tuple[str, str] | Mapping[str, str], AnswerExample, Answer]):
    """Answers questions with a part of a context.

    A call with a tuple (question, context) returns an `Answer`; a call with a list, a list.

    Examples:
        >>> answer = Answerer.load("squad/")  # doctest: +SKIP
        >>> answer(("Who wrote it?", "Ada wrote it in 1843.")).text  # doctest: +SKIP
        'Ada'
    """

    task_kind: ClassVar = AnswerQuestions


class Chooser(Predictor[tuple[str, Sequence[str]] | Mapping[str, Any], ChooseExample, Choice]):
    """Multiple choice among answers or endings.

    A call with a tuple (context, choices), or a mapping of `context`, `choices` and optionally
    `question`, returns a `Choice`; a call with a list, a list.

    Examples:
        >>> choose = Chooser.load("swag/")  # doctest: +SKIP
        >>> choose(("She opened the umbrella.", ["It rained.", "It sang."])).text  # doctest: +SKIP
        'It rained.'
    """

    task_kind: ClassVar = Choose
