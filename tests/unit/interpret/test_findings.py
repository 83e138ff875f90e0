"""The heading of each tab says what the tab shows."""

import re

import torch

from bertkit.interpret.attention_view import AttentionView

TEXT = "the dog saw the hat"


def read_tabs(view):
    return {tab["name"]: tab for tab in view.page.data["views"]}


def test_headings_of_attention_are_those_of_the_page(inspected):
    view = AttentionView.of(inspected, TEXT)
    tabs = read_tabs(view)
    assert tabs["heads"]["heading"] == view.finding.title
    assert len({tab["heading"] for tab in tabs.values()}) == len(tabs)
    heading = read_tabs(view)["neurons"]["heading"]
    found = re.fullmatch(r"Query “(.+)” and key “.+” score (.+) in head (.+); softmax .+", heading)
    assert found[1] == view.tokens[view.start.token]
    assert found[3] == f"{view.start.layer}.{view.start.head}"
    scores = view.inputs.observation.layers[view.start.layer - 1].scores
    row = scores[view.start.head - 1, view.start.token].tolist()
    assert any(f"{score:.2f}" == found[2] for score in row)
    heading = read_tabs(view)["tokens"]["heading"]
    found = re.fullmatch(r"Of all words “(.+)” receives most attention: (.+) times an .+", heading)
    given = torch.stack([heads.weights for heads in view.inputs.observation.layers])
    received = given.sum(dim=-2).mean(dim=(0, 1))[1:-1]  # without [CLS] and [SEP]
    assert found[1] == view.tokens[1 + int(received.argmax())]
    assert found[2] == f"{float(received.max()):.1f}"
    heading = read_tabs(view)["geometry"]["heading"]
    found = re.fullmatch(r"After .+ layer “(.+)” is nearest to “(.+)”, with cosine (.+)", heading)
    state = view.inputs.observation.states[-1]
    cosines = torch.cosine_similarity(state[view.start.token], state[1:-1], dim=-1)
    cosines[view.start.token - 1] = -1.0
    assert found[1] == view.tokens[view.start.token]
    assert found[2] == view.tokens[1 + int(cosines.argmax())]
    assert found[3] == f"{float(cosines.max()):.2f}"


def test_all_heads_are_counted_and_that_which_matters_most_is_named(inspected):
    heading = read_tabs(AttentionView.of(inspected, TEXT))["model"]["heading"]
    assert sum(map(int, re.findall(r"[ ](\d+) \S", heading.split(":")[1]))) == 4
    tab = read_tabs(AttentionView.of(inspected, TEXT))["importance"]
    layer, head = map(int, re.search(r"head (\d+)\.(\d+)", tab["heading"]).groups())
    rows = tab["data"]["ablation"]
    assert abs(rows[layer - 1][head - 1]) == max(abs(value) for row in rows for value in row)


def test_a_text_without_a_finding_names_the_model(inspected):
    tabs = read_tabs(AttentionView.of(inspected, "dog"))
    assert tabs["heads"]["heading"] == "Attention of small"
    assert tabs["inputs"]["heading"] == "Inputs: small"
    assert tabs["neurons"]["heading"] == "Neurons: small"
    assert tabs["geometry"]["heading"] == "Geometry: small"
