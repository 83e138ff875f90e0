"""Predictors of one task each, with the types that belong to it."""

from typing import ClassVar

from bertkit.inference.predictor import Predictor
from bertkit.tasks.classify.task import Classification, Classify, ClassifyExample


class Classifier(Predictor[str | tuple[str, str], ClassifyExample, Classification]):
    """Labels texts, or pairs of texts.

    Called with a text, or a tuple of two, it gives a `Classification`; with a list of them, a list.

    Examples:
        >>> classify = Classifier.load("sentiment/")  # doctest: +SKIP
        >>> classify("a gripping film").label  # doctest: +SKIP
        'positive'
        >>> [one.probability for one in classify(["a film", "dull"])]  # doctest: +SKIP
        [0.71, 0.98]
    """

    task_kind: ClassVar = Classify
