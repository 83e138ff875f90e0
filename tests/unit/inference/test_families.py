"""Explanations find a text's words whatever the tokenizer of a family makes of them."""

import pytest
from tests.closeness import assert_close
from tests.families import make_folder

from bertkit.inference.predictor import Predictor

FAMILIES = ["mpnet", "roberta", "modernbert", "xlm-roberta"]  # one of each kind of tokenizer
TEXT = "A cat, it's lost: 猫 alle Würde!"
WORDS = ["A", "cat", "it's", "lost", "猫", "alle", "Würde!"]
every_family = pytest.mark.parametrize("family", FAMILIES)


def load(folder, family, head):
    folder = make_folder(folder, family, head)
    return Predictor.load(folder, device="cpu", precision="fp32")


@every_family
def test_a_weight_is_what_a_class_loses_without_the_word(tmp_path, family):
    predict = load(tmp_path, family, "ForSequenceClassification")
    (found,) = predict(TEXT, explain=True).explanations
    assert [word.text for word in found.words] == WORDS
    # Behind another word, so that the pieces of the others stay the same.
    other = predict(TEXT.replace("alle ", ""))
    lost = found.value - other.probabilities[found.target]
    assert_close(found.words[5].weight, lost, precision="float32")


@every_family
def test_tags_are_explained_by_the_words_that_are_tagged(tmp_path, family):
    found = load(tmp_path, family, "ForTokenClassification")(TEXT, explain=True)
    words = [word.text for word in found.words]
    assert words == ["A", "cat", ",", "it", "'", "s", "lost", ":", "猫", "alle", "Würde", "!"]
    for one in found.explanations:
        assert [TEXT[word.start : word.stop] for word in one.words] == words


@every_family
def test_answers_are_explained_by_question_and_context(tmp_path, family):
    predict = load(tmp_path, family, "ForQuestionAnswering")
    found = predict({"question": "who, cat?", "context": TEXT}, explain=True)
    (one,) = found.explanations
    assert [word.text for word in one.words] == ["who", "cat?", *WORDS]
    assert [word.part for word in one.words] == ["question"] * 2 + ["context"] * len(WORDS)
