"""Tags held against those of people, those too that training didn't have."""

from dataclasses import replace

import pytest
from tests.closeness import close

from bertkit.tasks.evaluation import MAX_MISTAKES
from bertkit.tasks.tag.decoding import TaggedWord, Tagging
from bertkit.tasks.tag.examples import NO_TAG, TagExample
from bertkit.tasks.tag.scoring import TagScoring

LABELS = ("O", "B-LOC", "B-PER", "I-PER")


def make(*pairs):
    """Examples and predictions of pairs of tags."""
    examples, predictions = [], []
    for number, (truth, guess) in enumerate(pairs, start=1):
        words = [f"w{index}" for index in range(len(truth.split()))]
        examples.append(
            TagExample(words=tuple(words), tags=tuple(truth.split()), place=f"line {number}")
        )
        tagged = [TaggedWord(*pair, 0.5) for pair in zip(words, guess.split(), strict=True)]
        predictions.append(Tagging(tuple(tagged)))
    return examples, predictions


@pytest.mark.parametrize("scheme", ["BIO", None])
def test_words_without_a_tag_are_not_measured(scheme):
    examples, predictions = make(("B-PER ? O B-LOC", "B-PER B-LOC O O"), ("O ?", "O B-LOC"))
    examples = [
        replace(one, tags=tuple(tag.replace("?", NO_TAG) for tag in one.tags)) for one in examples
    ]
    short = make(("B-PER O B-LOC", "B-PER O O"), ("O", "O"))
    measured, expected = (
        TagScoring(*pair, LABELS, scheme) for pair in ((examples, predictions), short)
    )
    assert measured.metrics == expected.metrics
    assert measured.is_right.tolist() == [True, True, False, True]
    assert len(measured.confidences) == 4
    assert measured.evaluate().confusion == expected.evaluate().confusion
    assert "w1" not in measured.contrast(0)[1]


@pytest.mark.parametrize(
    ("truth", "guess"),
    [
        ("I-PER I-PER O", "B-PER I-PER O"),  # IOB1
        ("B-PER E-PER S-PER", "B-PER I-PER B-PER"),
        ("O I-PER", "O B-PER"),
    ],
)
def test_another_spelling_of_the_same_entities_is_right(truth, guess):
    found = make((truth, guess))
    assert set(TagScoring(*found, LABELS, "BIO").metrics.values()) == {1.0}
    evaluation = TagScoring(*found, LABELS, "BIO").evaluate()
    assert evaluation.mistakes == ()
    assert evaluation.is_right.all()
    assert all(true == guess for true, guess in evaluation.confusion)


@pytest.mark.parametrize("unseen", ["B-ORG", "PER", "X", "I-PER-x"])
def test_tags_that_training_did_not_have_are_mistakes(unseen):
    found = make((f"O {unseen} O B-LOC", "O B-PER O B-LOC"))
    metrics = TagScoring(*found, LABELS, "BIO").metrics
    assert metrics == close({"f1": 0.5, "precision": 0.5, "recall": 0.5, "accuracy": 0.75})
    evaluation = TagScoring(*found, LABELS, "BIO").evaluate()
    assert len(evaluation.labels) == 5
    assert evaluation.confusion[4, LABELS.index("B-PER")] == 1
    assert evaluation.is_right.tolist() == [True, False, True, True]


def test_mended_tags_that_training_did_not_have_stand_behind_the_labels():
    evaluation = TagScoring(*make(("O O", "B-PER O")), ("O", "I-PER"), "BIO").evaluate()
    assert evaluation.labels == ("O", "I-PER", "B-PER")
    assert evaluation.confusion == {(0, 0): 1, (0, 2): 1}


def test_plain_tags_are_told_word_by_word():
    found = make(("NN VB NN", "NN NN NN"), ("NN VB", "NN VB"))
    evaluation = TagScoring(*found, ("NN", "VB"), None).evaluate()
    assert evaluation.metrics == close({"accuracy": 0.8})
    assert evaluation.confusion == {(0, 0): 3, (1, 0): 1, (1, 1): 1}
    (mistake,) = evaluation.mistakes
    assert (mistake.expected, mistake.predicted) == ("w1 (VB, word 2)", "w1 (NN, word 2)")
    assert evaluation.warnings == ()


def test_all_there_is_to_see():
    pairs = [("B-PER I-PER O B-LOC", "B-PER O O O"), ("O O", "O B-LOC"), ("B-LOC", "B-LOC")]
    examples, predictions = make(*pairs * 20)
    evaluation = TagScoring(examples, predictions, LABELS, "BIO").evaluate()
    assert evaluation.metrics["f1 LOC"] == close(0.5)
    assert evaluation.metrics["f1 PER"] == 0.0
    for name in ("f1", "accuracy"):
        low, high = evaluation.intervals[name]
        assert low < evaluation.metrics[name] < high
    assert evaluation.confidences.tolist() == [0.5] * 140
    assert evaluation.is_right.mean() == close(evaluation.metrics["accuracy"])
    assert sum(evaluation.confusion.values()) == 140
    first, second = evaluation.mistakes[0], evaluation.mistakes[20]
    assert (first.place, first.text, first.error) == ("line 1", "w0 w1 w2 w3", 3)
    assert first.expected == "w0 w1 (PER, word 1), w3 (LOC, word 4)"
    assert first.predicted == "w0 (PER, word 1)"
    assert (second.place, second.expected, second.predicted) == (
        "line 2",
        "nothing else",
        "w1 (LOC, word 2)",
    )


def test_the_interval_of_accuracy_draws_sentences():
    found = make(("O " * 9 + "O", "O " * 9 + "O"), ("O", "B-PER"))
    low, high = TagScoring(*found, LABELS, "BIO").evaluate().intervals["accuracy"]
    assert (low, high) == (0.0, 1.0)  # twice the second, twice the first


def test_many_mistakes_are_cut():
    found = make(*[("B-PER", "O")] * (MAX_MISTAKES + 1))
    evaluation = TagScoring(*found, LABELS, "BIO").evaluate()
    assert len(evaluation.mistakes) == MAX_MISTAKES
    assert evaluation.mistakes[0].predicted == "nothing"


def test_a_model_that_says_one_tag_is_told():
    assert TagScoring(*make(("B-PER O", "O O")), LABELS, "BIO").evaluate().warnings == (
        "no entity was predicted: every tag is O",
    )
    assert TagScoring(*make(("NN VB", "NN NN")), ("NN", "VB"), None).evaluate().warnings == (
        "every tag is 'NN'",
    )
