"""What a model says of a passage is what its predictor says, and changes where heads are off."""

from dataclasses import replace

import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small import save_kind, save_small
from tests.unit.inference.small_task import (
    LABELS,
    save_answerer,
    save_classifier,
    save_model,
    save_tagger,
)

from bertkit.base.errors import NonFiniteError
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.predictor import Answerer, Classifier, Regressor, Tagger
from bertkit.interpret.ablation import ablate
from bertkit.interpret.head_predictions import (
    BY_TASK,
    NUMBER_TASKS,
    Outcome,
    compare,
    find_outcome,
    to_json,
)
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.heads import BertForNextSentencePrediction
from bertkit.tasks.choose import ChooseSettings
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress
from bertkit.tasks.table import TASKS

TEXT = "the cats saw a hat ."
PAIR = ("the cat saw a hat", "a dog lost the hat .")


@torch.inference_mode()
def outcome_of(folder, *texts):
    inspected = InspectedModel.load(folder, precision="fp32")
    return find_outcome(inspected, inspected.read(*texts))


def decisions_of(outcome, number=0):
    return to_json(outcome)["judgments"][number]["decisions"]


def test_labels_are_those_of_the_classifier_with_its_temperature(tmp_path):
    task = Classify(ClassifySettings(max_length=16), LABELS, {"temperature": 1.7})
    folder = save_model(tmp_path / "labels", task)
    for texts in ((TEXT,), PAIR):
        expected = Classifier.load(folder, engine="torch", precision="fp32")(
            texts if len(texts) > 1 else texts[0]
        )
        (decision,) = decisions_of(outcome_of(folder, *texts))
        assert decision["said"] == expected.label
        assert decision["token"] is None
        assert dict(decision["likeliest"]) == close(expected.probabilities, "float32")


def test_several_labels_are_given_from_the_threshold_of_the_task_on(tmp_path):
    settings = ClassifySettings(max_length=16, multi_label=True, threshold=0.9)
    for numbers in ({}, {"threshold": 0.05}):
        folder = save_model(tmp_path / f"labels{len(numbers)}", Classify(settings, LABELS, numbers))
        expected = Classifier.load(folder, engine="torch", precision="fp32")(TEXT).labels
        found = decisions_of(outcome_of(folder, TEXT))
        assert tuple(one["about"] for one in found if one["said"] == "yes") == expected
        assert any((one["said"] == "yes") != (one["likeliest"][0][0] == "yes") for one in found)


def test_tags_are_those_of_the_tagger_word_by_word(tmp_path):
    folder = save_tagger(tmp_path / "tags")
    words = Tagger.load(folder, engine="torch", precision="fp32")(TEXT).words
    found = decisions_of(outcome_of(folder, TEXT))
    assert [decision["about"] for decision in found] == [word.text for word in words]
    assert [decision["token"] for decision in found] == [1, 2, 4, 5, 6, 7]
    for decision, word in zip(found, words, strict=True):
        assert decision["probability"] == close(word.probability, "float32")


def test_an_answer_is_that_of_the_answerer_and_its_ends_are_its_tokens(tmp_path):
    folder = save_answerer(tmp_path / "answers")
    question, context = "a dog", "the cats saw a hat ."
    expected = Answerer.load(folder, engine="torch", precision="fp32")((question, context))
    found = to_json(outcome_of(folder, question, context))["judgments"][0]
    assert found["answer"] == expected.text
    begins, ends = found["decisions"]
    tokens = InspectedModel.load(folder, precision="fp32").read(question, context).encoding
    assert tokens.offsets[begins["token"]][0] == expected.start
    assert tokens.offsets[ends["token"]][1] == expected.stop
    assert begins["said"] == tokens.tokens[begins["token"]]


def test_a_model_that_answers_decides_nothing_without_a_text_to_look_in(tmp_path):
    assert outcome_of(save_answerer(tmp_path / "answers"), TEXT).predictions == ()


def test_numbers_are_those_of_the_regressor(tmp_path):
    folder = save_model(tmp_path / "numbers", Regress(RegressSettings(max_length=16)))
    outcome = outcome_of(folder, TEXT)
    assert outcome.predictions == ()
    expected = Regressor.load(folder, engine="torch", precision="fp32")(TEXT).value
    assert float(outcome.number) == close(expected, "float32")
    assert outcome.loss is outcome.number


def test_a_choice_alone_has_a_score(tmp_path):
    outcome = outcome_of(save_model(tmp_path / "choices", Choose(ChooseSettings())), *PAIR)
    assert outcome.number is not None
    assert outcome.number.shape == ()


def test_it_is_known_of_every_task_what_it_says():
    vectors = {"embed"}  # which say nothing alone
    assert {*BY_TASK, *NUMBER_TASKS} == TASKS.keys() - vectors


def test_masks_are_filled_as_fill_mask_does(small_folder):
    text = "the [MASK] saw a [MASK] ."
    expected = FillMask.load(small_folder, engine="torch", precision="fp32")(text).blanks
    found = decisions_of(outcome_of(small_folder, text))
    assert [decision["token"] for decision in found] == [2, 5]
    for decision, blank in zip(found, expected, strict=True):
        assert [word for word, _ in decision["likeliest"]] == [one.token for one in blank]
        assert decision["probability"] == close(blank[0].probability, "float32")


def test_a_pair_is_judged_as_next_sentence_does(small_folder, tmp_path):
    save_kind(tmp_path / "next", BertForNextSentencePrediction)
    expected = NextSentence.load(small_folder, precision="fp32")(PAIR)
    for folder in (small_folder, tmp_path / "next"):
        (decision,) = decisions_of(outcome_of(folder, *PAIR))
        assert dict(decision["likeliest"])["follows"] == close(expected, "float32")


def test_what_tells_most_comes_first(small_folder):
    questions = [
        [prediction.question.split()[0] for prediction in outcome.predictions]
        for outcome in (
            outcome_of(small_folder, *PAIR),
            outcome_of(small_folder, "the [MASK]", "a hat"),
        )
    ]
    assert questions == [["whether", "the"], ["the", "whether"]]


def test_a_long_text_is_read_whole(tmp_path):
    folder = save_classifier(tmp_path / "labels", max_length=8)
    short, long = outcome_of(folder, "the cat saw a hat . ."), outcome_of(folder, "the cat " * 10)
    assert len(short.tokens) == 9
    assert len(long.tokens) == 22


def test_a_plain_encoder_says_nothing_but_has_vectors(tmp_path):
    save_kind(tmp_path / "plain", BertModel)
    outcome = outcome_of(tmp_path / "plain", TEXT)
    assert outcome.predictions == ()
    assert outcome.loss is None
    assert outcome.tokens.shape == (9, 8)
    assert_close(outcome.vector, outcome.tokens.mean(dim=0))


@torch.inference_mode()
def test_a_change_is_that_of_what_was_said_before(small_folder):
    inspected = InspectedModel.load(small_folder, precision="fp32")
    encoded = inspected.read("the [MASK] saw a hat")
    before = find_outcome(inspected, encoded)
    with ablate(inspected.model, [(1, 1), (2, 2)]):
        after = find_outcome(inspected, encoded)
        scores = inspected.model.score_words(inspected.model.encoder(encoded.pack())[[2]])
    predicted = before.predictions[0].predicted
    first = before.predictions[0].log_probabilities.exp()[0, predicted]
    change = compare(before, after)
    assert change.probability == close(float(scores.softmax(-1)[0, predicted] - first), "float32")
    assert change.main == change.probability
    assert change.number is None
    cosine = torch.cosine_similarity(before.vector.double(), after.vector.double(), dim=0)
    assert change.vector == close(1 - float(cosine), "float32")
    assert change.tokens > 0
    assert to_json(after, before)["judgments"][0]["decisions"][0]["kept"] == close(
        float(first) + change.probability, "float32"
    )


def test_small_turns_are_told_exactly():
    first = Outcome(torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    second = replace(first, tokens=torch.tensor([[1.0, 1e-7]], dtype=torch.float64))
    assert compare(first, second).vector == close(5e-15, within=5e-18)
    assert compare(first, second).tokens == close(1e-7, "float32", floor=0)
    assert compare(first, second).main == compare(first, second).vector


def test_states_that_are_not_finite_are_refused(small_folder):
    inspected = InspectedModel.load(small_folder, precision="fp32")
    with torch.no_grad():
        inspected.model.encoder.layers[0].attention.output.bias[0] = torch.inf
    with pytest.raises(NonFiniteError, match="bertkit inspect"):
        find_outcome(inspected, inspected.read(TEXT))


@pytest.mark.parametrize("save", [save_small, save_classifier, save_tagger, save_answerer])
def test_scores_that_are_not_finite_are_refused(save, tmp_path):
    save(tmp_path / "model")
    inspected = InspectedModel.load(tmp_path / "model", precision="fp32")
    with torch.no_grad():
        for name, parameter in inspected.model.named_parameters():
            if not name.startswith("encoder."):
                parameter.fill_(torch.nan)
    for texts in ((TEXT,), PAIR):
        with pytest.raises(NonFiniteError, match="the scores of the head of model aren't"):
            find_outcome(inspected, inspected.read(*texts))


def test_without_a_mask_every_token_is_a_decision(small_folder):
    found = decisions_of(outcome_of(small_folder, TEXT))
    tokens = ["the", "cat", "##s", "saw", "a", "hat", "."]
    assert [decision["about"] for decision in found] == tokens


def test_vectors_without_length_are_no_division_by_zero():
    nothing = Outcome(torch.zeros(2, 3))
    assert compare(nothing, nothing).vector == 0
    assert compare(nothing, nothing).tokens == 0
