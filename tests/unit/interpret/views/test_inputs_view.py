"""The inputs view: blocks that add up, sines beside learned positions, and swapped words."""

import numpy as np
import pytest
import torch
from tests.closeness import close

from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.settings import ViewSettings
from bertkit.interpret.views.inputs import NUM_DIMENSIONS, STEPS, collect_inputs, find_swap
from bertkit.interpret.views.view import ViewInputs
from bertkit.nn.embeddings import sinusoids

TEXT, PAIR = "the dog saw the hat", "a cat lost it ."


def observe(inspected, text=TEXT, pair=None):
    return ViewInputs(inspected, inspected.observe(inspected.read(text, pair)))


def unpack(part):
    return np.array(part["rows"]) * part["limit"] / STEPS


def test_the_blocks_are_the_embeddings_and_what_the_encoder_makes_of_them(inspected):
    inputs = observe(inspected, TEXT, PAIR)
    blocks = collect_inputs(inputs)["blocks"]
    embeddings, encoding = inspected.model.encoder.embeddings, inputs.observation.encoded.encoding
    summed = sum(
        table.weight[ids].detach()
        for table, ids in (
            (embeddings.word, encoding.ids),
            (embeddings.position, range(len(encoding.ids))),
            (embeddings.token_type, encoding.token_type_ids),
        )
    )
    expected = embeddings.norm(summed)[:, :NUM_DIMENSIONS].detach().numpy()
    limit = blocks["sum"]["limit"]
    found = unpack(blocks["sum"])
    assert found == close(expected.clip(-limit, limit), within=limit / STEPS)
    tokens = inputs.observation.encoded.tokens
    first, second = (place for place, token in enumerate(tokens) if token == "the")
    assert blocks["token"]["rows"][first] == blocks["token"]["rows"][second]
    assert blocks["position"]["rows"][first] != blocks["position"]["rows"][second]
    assert blocks["segment"]["rows"][1] != blocks["segment"]["rows"][-1]


def test_sines_stand_beside_the_learned_positions(inspected):
    positions = collect_inputs(observe(inspected))["positions"]
    learned = inspected.model.encoder.embeddings.position.weight.detach()
    sines = unpack(positions["sines"]["table"])
    assert sines == close(sinusoids(*learned.shape).numpy(), within=0.02)
    for name in ("learned", "sines"):
        cosines = unpack(positions[name]["cosines"])
        assert np.diag(cosines) == close(np.ones(len(cosines)), "float32")
        assert cosines == close(cosines.T, "float32")


def test_swapped_words_change_nothing_without_positions(inspected):
    swap = collect_inputs(observe(inspected))["swap"]
    assert swap["words"] == ["dog", "hat"]
    assert swap["text"] == "the hat saw the dog"
    for _, with_positions, without_positions in swap["rows"]:
        assert with_positions < 0.9999
        assert without_positions == close(1.0, "float32")
    assert collect_inputs(observe(inspected, "the the dog"))["swap"] is None
    collect_inputs(observe(inspected))
    weight = inspected.model.encoder.embeddings.word.weight
    assert not torch.is_inference(weight)


def test_the_swap_is_summarized_in_lines(inspected):
    view = AttentionView.of(inspected, TEXT, settings=ViewSettings(views="inputs"))
    lengths, measures = view.summarize()[:8], view.summarize()[8:10]
    assert [line.split()[2] for line in lengths[1:]] == view.tokens
    word = inspected.model.encoder.embeddings.word.weight.detach()
    id_ = view.inputs.observation.encoded.encoding.ids[2]
    assert float(lengths[3].split()[3]) == close(float(word[id_].norm()), within=6e-4)
    assert [line.split(":")[0].split(", ")[1] for line in measures] == ["learned", "sines"]
    first, heading, *rows = view.summarize()[10:]
    assert first == "“dog” and “hat” swapped: the hat saw the dog"
    assert heading.split("  ")[0] == "cosine before and after"
    assert [row.split()[-1] for row in rows] == ["1.000"] * 3
    assert AttentionView.of(inspected, TEXT).summarize()[0] == view.finding.title


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the dog saw the hat", ["dog", "hat"]),
        ("a cat lost the hat . it saw the dog", ["hat", "dog"]),  # both after “the”
        ("dog saw a hat", ["dog", "hat"]),
    ],
)
def test_words_after_the_same_word_are_swapped(inspected, text, words):
    encoded = inspected.read(text)
    assert [encoded.tokens[place] for place in find_swap(encoded)] == words
