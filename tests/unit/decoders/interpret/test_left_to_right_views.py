"""Views of a model that reads left to right are of what each token can see."""

import json
import math

import pytest
import torch
from tests.closeness import assert_close, close
from tests.unit.inference.small import build_model
from tests.unit.inference.small_causal import save_causal
from tests.unit.inference.small_task import LABELS, save_classifier

from bertkit.base.errors import InputError, SettingsError
from bertkit.decoders.attention_views import collect_next
from bertkit.interpret.attention_view import AttentionView, gather_numbers
from bertkit.interpret.head_predictions import find_outcome
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.settings import ViewSettings
from bertkit.interpret.views.attention import collect_attention
from bertkit.models.bert.fine_tuning import BertForSequenceClassification

TEXT = "the cats saw the hat"
TOKENS = ["[CLS]", "the", "cat", "##s", "saw", "the", "hat", "[SEP]"]


@pytest.fixture(scope="module")
def inspected(causal_folder):
    return InspectedModel.load(causal_folder)


@pytest.fixture(scope="module")
def view(inspected):
    return AttentionView.of(inspected, TEXT)


def test_the_page_has_the_views_that_suit(view):
    data = view.page.data
    names = [one["name"] for one in data["views"]]
    assert names == [
        "heads",
        "model",
        "neurons",
        "inputs",
        "tokens",
        "next",
        "importance",
        "geometry",
    ]
    assert data["numAllowed"] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(
        one["legend"][-1].startswith("This is a left-to-right model") for one in data["views"]
    )
    assert "next" not in data["patterns"][0][0]["shares"]


def test_no_more_is_read_than_it_was_trained_on(tmp_path):
    save_causal(tmp_path, max_length=7)
    with pytest.raises(InputError, match="has 8 tokens, and the model takes 7 at a time"):
        InspectedModel.load(tmp_path).read(TEXT)


def test_a_model_of_one_stack_has_one_attention_to_choose():
    model = build_model().eval()
    with pytest.raises(SettingsError, match="attention is for models with several"):
        AttentionView.of(
            InspectedModel("both", model, None), TEXT, settings=ViewSettings(attention="cross")
        )


def test_next_words_are_those_of_the_model(inspected, view):
    data = collect_next(view.inputs)
    ids = view.inputs.observation.encoded.encoding.ids
    with torch.inference_mode():
        scores = inspected.model(torch.tensor([ids]))[0].log_softmax(dim=-1)
    steps = data["steps"]
    assert [step["token"] for step in steps] == list(range(7))
    assert [step["next"] for step in steps] == TOKENS[1:]
    own = [float(scores[place, ids[place + 1]]) for place in range(7)]
    assert [math.log(step["own"][0]) for step in steps] == close(own, "float32")
    assert data["perplexity"] == close(math.exp(-sum(own) / 7), "float32")
    words = scores[:, : inspected.tokenizer.vocab_size]
    for place, step in enumerate(steps):
        rank = int((words[place] >= words[place, ids[place + 1]]).sum())
        assert step["own"][1] == rank
        best = inspected.tokenizer.vocabulary[int(words[place].argmax())]
        assert step["words"][0][0] == best
    json.dumps(data, allow_nan=False)
    with torch.inference_mode():
        [prediction] = find_outcome(inspected, view.inputs.observation.encoded).predictions
    assert (prediction.question, prediction.about) == (
        ("the word after each token", tuple(TOKENS[:-1]))
    )
    expected = view.inputs.observation.predicted.log_probabilities
    assert_close(prediction.log_probabilities, expected)


def test_tokens_are_held_against_what_they_would_get_evenly(view):
    received = torch.tensor(collect_attention(view.inputs)["received"])
    even = torch.ones(8, 8).tril()
    even = (even / even.sum(dim=1, keepdim=True)).sum(dim=0)
    expected = view.weights(1).sum(dim=1) / even
    assert_close(received[0], expected, within=6e-4)


def test_numbers_and_figures_have_no_later_tokens(view):
    assert "attention" not in gather_numbers(view)
    links = view.figure(1, 1).draw()
    assert links.count("<line") <= 36
    with pytest.raises(
        SettingsError, match="an alignment needs attention from one text to another"
    ):
        view.alignment()


def test_a_model_for_a_task_that_reads_left_to_right_is_seen(tmp_path):
    save_causal(tmp_path / "gpt")
    save_classifier(tmp_path / "labels")
    model = BertForSequenceClassification.from_pretrained(
        tmp_path / "gpt", new_heads=True, num_labels=len(LABELS)
    )
    model.save_pretrained(tmp_path / "labels")
    inspected = InspectedModel.load(tmp_path / "labels")
    view = AttentionView.of(inspected, TEXT)
    assert torch.equal(view.weights(2), view.weights(2).tril())
    names = [one["name"] for one in view.page.data["views"]]
    assert "importance" in names
    assert "next" not in names
    [prediction] = find_outcome(inspected, inspected.read(TEXT)).predictions
    assert prediction.question == "the label"
