"""Explanations: exact weights of words as a reader sees them, for each task, and their check."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tests.closeness import assert_close as assert_near
from tests.unit.inference.small_task import save_answerer, save_classifier, save_model, save_tagger

from bertkit.base import extras
from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.inference import explain
from bertkit.inference.explain_inputs import find_written_words, join_words
from bertkit.inference.explain_targets import list_targets
from bertkit.inference.predictor import Predictor
from bertkit.inference.torch_model import find_network
from bertkit.tasks.answer.scoring import Answer, Windows, find_owners
from bertkit.tasks.batch import Encoded, TokenSequence
from bertkit.tasks.choose import ChooseSettings
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress

assert_close = partial(assert_near, precision="float32")
MULTI = Classify(ClassifySettings(max_length=16, multi_label=True, threshold=0.1), ("x", "y", "z"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    folders = {
        "classify": save_classifier(place / "labels"),
        "multi": save_model(place / "multi", MULTI),
        "regress": save_model(place / "numbers", Regress(RegressSettings(max_length=16))),
        "tag": save_tagger(place / "tags"),
        "answer": save_answerer(place / "answers"),
        "choose": save_model(place / "choices", Choose(ChooseSettings(max_length=16))),
    }
    return {name: Predictor.load(one, precision="fp32") for name, one in folders.items()}


def words_of(explanation):
    return [word.text for word in explanation.words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Broke after a week.", ["Broke", "after", "a", "week"]),
        ("(It's well-made!)  - 100%, really...", ["It's", "well-made!", "-", "100%", "really"]),
        ("u.s. ... 5.0", ["u.s", "...", "5.0"]),
        ("我们很好。", ["我", "们", "很", "好"]),
        (" \n", []),
    ],
)
def test_words_are_those_that_a_reader_sees(text, words):
    assert [text[start:stop] for start, stop in find_written_words(text)] == words


def test_letters_that_one_piece_covers_are_one_word():
    words = [*find_written_words("I am 中国人。")]
    pieces = [(0, 1), (2, 4), (5, 5), (5, 7), (7, 8), (8, 9)]
    assert join_words(words, pieces) == [(0, 1), (2, 4), (5, 7), (7, 8)]
    assert join_words(words, [(2, 3), (3, 4), (5, 8)])[2:] == [(5, 8)]
    assert join_words(words, []) == words


@pytest.mark.parametrize("name", ["classify", "multi", "regress"])
def test_a_weight_is_what_the_prediction_loses_without_the_word(models, name):
    predict, text = models[name], "the cats, saw a dog"
    shorter = ["cats, saw a dog", "the , saw a dog", "the cats, a dog", "the cats, saw dog"]
    shorter.append("the cats, saw a")
    found = predict(text, explain=True)
    assert len(found.explanations) == (len(found.labels) if name == "multi" else 1)
    for one in found.explanations:
        assert words_of(one) == ["the", "cats", "saw", "a", "dog"]
        others = predict(shorter)
        values = [each.probabilities[one.target] if one.target else each.value for each in others]
        assert_close([one.value - word.weight for word in one.words], values)
        whole = found.probabilities[one.target] if one.target else found.value
        assert_close(one.value, whole)


def test_the_named_words_are_left_out_together_for_the_check(models):
    (one,) = models["classify"]("the cats, saw a dog", explain=True).explanations
    assert 0 < len(one.named) <= 3
    weights = [one.words[place].weight for place in one.named]
    assert weights == sorted((word.weight for word in one.words), reverse=True)[: len(weights)]
    assert min(weights) > 0
    left = "the cats, saw a dog"
    for place in sorted(one.named, reverse=True):
        word = one.words[place]
        left = left[: word.start] + left[word.stop :]
    assert_close(one.value_without, models["classify"](left).probabilities[one.target])


def test_both_texts_of_a_pair_have_words(models):
    (one,) = models["classify"](("the cat", "a dog."), explain=True).explanations
    places = [(word.part, word.start, word.text) for word in one.words]
    assert places == [("text", 0, "the"), ("text", 4, "cat"), ("pair", 0, "a"), ("pair", 2, "dog")]


def test_words_that_are_cut_off_or_stand_in_several_windows_are_told_apart(models):
    predict, text = models["classify"], "the cat saw a dog - " * 4
    (one,) = predict(text, explain=True).explanations
    assert len(one.words) == 14  # [CLS] and [SEP] take the rest of 16 tokens
    windows = models["tag"](text, explain=True)
    assert all(len(one.words) == 24 for one in windows.explanations)


def test_without_pytorch_no_gradients_are_followed(models, monkeypatch):
    monkeypatch.setattr(explain, "GRADIENT_COST", 0)
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    message = "explaining a text of so many words needs PyTorch, which isn't installed; pip install"
    with pytest.raises(MissingExtraError, match=message):
        models["classify"]("the cats, saw a dog", explain=True)


def test_gradients_add_up_and_name_words_of_long_texts(models, monkeypatch):
    predict, text = models["classify"], "the cats, saw a dog"
    (exact,) = predict(text, explain=True).explanations
    monkeypatch.setattr(explain, "GRADIENT_COST", 0)
    (one,) = predict(text, explain=True).explanations
    assert (exact.method, one.method) == ("words left out", "gradients")
    assert words_of(one) == words_of(exact)
    encoded = predict.loaded.tokenizer.encode("the cats, saw a dog")
    emptied = [
        id_ if token in {"[CLS]", "[SEP]", "[UNK]"} else predict.loaded.tokenizer.pad_id
        for id_, token in zip(encoded.ids, encoded.tokens, strict=True)
    ]
    with torch.inference_mode():
        logits = find_network(predict.engine)(torch.tensor([emptied])).double()[0]
    empty = logits.softmax(-1)[predict.task.labels.index(one.target)].item()
    total = sum(word.weight for word in one.words)
    assert_close(total, one.value - empty, within=1e-3)


@pytest.mark.parametrize("name", ["classify", "tag", "answer"])
def test_probabilities_that_round_to_one_are_explained_by_gradients(tmp_path, monkeypatch, name):
    save = {"classify": save_classifier, "tag": save_tagger, "answer": save_answerer}[name]
    predict = Predictor.load(save(tmp_path / name), precision="fp32")
    head = "qa_outputs" if name == "answer" else "classifier"
    predict.engine.weights[f"{head}.weight"] *= 500
    monkeypatch.setattr(explain, "GRADIENT_COST", 0)
    text = ("the cat", "a dog saw the hat .") if name == "answer" else "the cats, saw a dog"
    found = predict(text, explain=True).explanations
    assert found
    for one in found:
        assert one.method == "gradients"
        assert np.isfinite([word.weight for word in one.words]).all()


def test_each_entity_is_explained_with_its_words_masked(models):
    predict = models["tag"]
    found = predict("a cat saw the dogs.", explain=True)
    assert [one.target for one in found.explanations] == [
        f"{entity.type} {entity.text}" for entity in found.entities
    ]
    assert found.entities
    given = predict(("a", "cat", "saw", "the", "dogs", "."), explain=True)
    for one, entity, same in zip(
        found.explanations, found.entities, given.explanations, strict=True
    ):
        assert_close(one.value, entity.probability)
        assert words_of(one) == ["a", "cat", "saw", "the", "dogs", "."]
        assert_close([word.weight for word in one.words], [word.weight for word in same.words])
    encode, model = predict.loaded.tokenizer.encode, find_network(predict.engine)
    texts = "a cat saw the dogs.", "a [MASK] saw the dogs."
    ids = torch.tensor([encode(text, read_mask=True).ids for text in texts])
    with torch.inference_mode():
        whole, hidden = model(ids).softmax(-1)[:, [1, 2, 3, 4, 5, 7]]  # 6 is ##s
    entity, one = found.entities[0], found.explanations[0]
    span = slice(entity.first_word, entity.stop_word)
    share = hidden[span].gather(1, whole[span].argmax(-1)[:, None]).mean().item()
    assert_close(one.value - one.words[1].weight, share)


def test_an_answer_is_explained_by_question_and_context(models):
    found = models["answer"](("the cat", "a dog saw the hat . " * 3), explain=True)
    (one,) = found.explanations
    assert one.target == found.text
    assert {word.part for word in one.words} == {"question", "context"}
    assert sum(word.weight != 0 for word in one.words) > 3
    assert 0 < one.value < 1


def test_an_answer_of_bytes_is_explained_in_a_window_that_has_it(models):
    # Tokens 3 and 4 are bytes of one character: the answer begins with the second, in window 1.
    parts = (range(4), range(4, 7))
    offsets = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (3, 4), (4, 5), (5, 6)])
    windows = Windows(parts, find_owners(parts, len(offsets)), offsets, num_before=2)
    sequences = tuple(TokenSequence([0] * (3 + len(part)), [0] * (3 + len(part))) for part in parts)
    encoded = Encoded(sequences, alignment=windows)
    logits = np.random.default_rng(0).normal(size=(13, 2))
    answer = Answer("bc", 3, 5, 1.0, None, ())
    [target] = list_targets(models["answer"].task, answer, encoded, logits)
    logs = logits[7:] - np.log(np.exp(logits[7:]).sum(axis=0))
    share = np.exp(logs[2, 0] + logs[3, 1])
    assert_near(target.score(logits), np.log(share / (1 - share)))


def test_nothing_to_explain_is_no_error(models):
    (one,) = models["classify"]("", explain=True).explanations
    assert (one.words, one.named) == ((), ())
    assert_close(one.value_without, one.value)
    with pytest.raises(SettingsError, match="no setting explain"):
        models["choose"](("a cat", ("a dog", "a hat")), explain=True)
    assert models["classify"]("a cat").explanations == ()
    plain = models["tag"].task.settings.model_copy(update={"scheme": "plain"})
    tagger = replace(models["tag"], task=replace(models["tag"].task, settings=plain))
    with pytest.raises(SettingsError, match="explain is for entities"):
        tagger("a cat", explain=True)


def test_explanations_are_shown_as_text_as_html_and_as_data(models):
    text = "the <b>cat</b>\x1b[0m saw"
    found = models["classify"](text, explain=True)
    (one,) = found.explanations
    assert "\x1b" not in one.describe()
    assert one.to_terminal().count("\x1b") % 2 == 0 < one.to_terminal().count("\x1b[3")
    assert "␛" in one.to_terminal()
    assert "<b>cat" not in found._repr_html_().split("</table>")[1]
    assert "background: rgba(" in found._repr_html_()
    (told,) = found.to_json()["explanations"]
    assert [text[word["start"] : word["stop"]] for word in told["words"]] == words_of(one)
    assert found.to_row()["explanation"] == one.list_words()
    assert "explanations" not in models["classify"](text).to_json()
    several = models["classify"](["the cat saw"] * 2, explain=True)
    assert several._repr_html_().count(several[0].explanations[0].list_words()) == 2
    (number,) = models["regress"]([text], explain=True)
    assert "explanation" in number.to_row().keys() & number.as_row().keys()
