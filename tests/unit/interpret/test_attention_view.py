"""A view of a model is what the model computed, and shows what was chosen."""

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_classifier
from tests.unit.reports.reading import Reader

from bertkit.base.errors import InputError, SettingsError
from bertkit.interpret import build
from bertkit.interpret.attention_view import AttentionView, gather_numbers
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.settings import ViewSettings
from bertkit.interpret.views.table import VIEWS

TEXT = "the cats saw the hat"
TOKENS = ["[CLS]", "the", "cat", "##s", "saw", "the", "hat", "[SEP]"]


def see(inspected: InspectedModel, text: str = TEXT, **choices: object) -> AttentionView:
    return AttentionView.of(inspected, text, settings=ViewSettings(**choices))


def test_weights_are_those_of_the_models_pass_also_in_figures(inspected):
    view = see(inspected)
    assert view.tokens == TOKENS
    observed = inspected.observe(inspected.read(TEXT))
    for layer in (1, 2):
        assert_close(view.weights(layer), observed.layers[layer - 1].weights)
    assert_close(view.weights(2).sum(dim=-1), torch.ones(2, 8))
    figure = view.figure(2, 1)
    assert figure.title == "small, layer 2, head 1"
    assert (figure.tokens, figure.focus) == (TOKENS, None)
    assert_close(torch.tensor(figure.weights), view.weights(2)[0])
    assert view.figure(2, 1, token="hat").focus == 6


def test_a_page_begins_with_what_is_left_open_at_its_most_telling(inspected):
    for choices in ({}, {"layer": 2}, {"layer": 1, "head": 2}, {"token": "hat"}):
        view = see(inspected, views="heads", **choices)
        start = view.page.data["start"]
        assert start["heads"] == [start["head"]]
        assert start["token"] is not None
        assert view.finding.title.endswith(f"in head {start['layer']}.{start['head']}")
        for name in choices.keys() - {"token"}:
            assert start[name] == choices[name]
    short = see(inspected, "cat", views="heads")
    assert (short.finding, short.page.title) == (None, "Attention of small")
    with pytest.raises(SettingsError, match="choose it with --layer and --head"):
        short.opening_figure()


def test_a_page_has_the_views_that_were_asked_for(inspected, tmp_path):
    page = see(inspected, views="model, heads,model").page
    assert [view["name"] for view in page.data["views"]] == ["model", "heads"]
    record = see(inspected, views="heads").write(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size == record.size_bytes


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing(inspected):
    view = see(inspected, 'the "cat" & </iframe><script>alert(1)</script>', views="heads")
    [frame] = Reader(view._repr_html_()).elements
    assert frame["tag"] == "iframe"
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == view.page.render()
    assert frame["title"] == view.page.title
    broken = InspectedModel("broken\udcff\0", inspected.model, inspected.tokenizer)
    shown = see(broken, "cat", views="heads")._repr_html_()
    assert 'title="Attention of broken\ufffd␀"' in shown
    shown.encode()  # lone surrogates can't be


def test_a_token_is_found_by_its_text_or_its_number(inspected):
    encoded = inspected.read("the 7 cats saw the hat")
    assert [encoded.find(word) for word in ("the", "##s", "[SEP]", "7", "1", "9")] == [
        *(1, 4, 8, 6, 0, 8)
    ]
    with pytest.raises(InputError, match=r"no token 'dog'; the tokens are \[CLS\] the \[U"):
        encoded.find("dog")
    for wrong in ("0", "10", "-1", "", "²", "9" * 9999):
        with pytest.raises(InputError, match="there is no token"):
            encoded.find(wrong)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"layer": 3}, r"there is no head 3\.1: this model has layers 1 to 2"),
        ({"layer": 1, "head": 3}, r"there is no head 1\.3"),
        ({"token": "dog"}, "there is no token 'dog'"),
        ({"without": "5.3"}, r"there is no head 5\.3"),
        ({"without": ""}, "name at least one head"),
        ({"views": "heads,brain"}, f"there is no view 'brain'; name some of {', '.join(VIEWS)}"),
        ({"views": " ,"}, f"name at least one view, of {', '.join(VIEWS)}"),
    ],
)
def test_what_the_model_has_not_is_refused(inspected, choices, message):
    with pytest.raises((SettingsError, InputError), match=message):
        see(inspected, **choices)


def test_a_blank_is_the_mask_token(inspected):
    assert "[MASK]" in see(inspected, "the [MASK]").tokens


def test_a_layer_may_be_counted_from_the_last(inspected):
    assert see(inspected, layer=-1, head=1).start == see(inspected, layer=2, head=1).start
    with pytest.raises(SettingsError, match=r"there is no head -3\.1"):
        see(inspected, layer=-3)


def test_a_view_that_does_not_suit_is_left_out_or_refused(tmp_path):
    save_classifier(tmp_path / "labels")
    view = AttentionView.of(tmp_path / "labels", "the cat", settings=ViewSettings(views="words"))
    with pytest.raises(SettingsError, match="labels doesn't support the view words"):
        _ = view.page
    page = AttentionView.of(tmp_path / "labels", "the cat").page
    names = [view["name"] for view in page.data["views"]]
    assert "heads" in names
    assert "words" not in names
    assert "importance" in names


def test_a_figure_has_room_for_so_many_tokens(tmp_path):
    save_small(tmp_path / "long", max_position_embeddings=200)
    view = AttentionView.of(tmp_path / "long", "cat " * 127)
    with pytest.raises(InputError, match="room for 128 tokens, and the text has 129"):
        view.figure(1, 1)


def test_a_page_has_room_for_so_many_weights(inspected, monkeypatch):
    monkeypatch.setattr(build, "MAX_WEIGHTS", 4 * 8 * 8)
    assert see(inspected, views="heads").page
    view = see(inspected, TEXT + " .", views="heads")
    with pytest.raises(
        InputError, match="would have 324 attention weights, and a page has room for 256"
    ):
        _ = view.page
    assert view.weights(1).shape == (2, 9, 9)  # of one layer there may be more
    view = see(inspected, TEXT + " .", views="inputs")  # its lines need no page
    assert len(view.summarize()) > 9
    assert view.inputs.collect(VIEWS["inputs"]) is view.inputs.collect(VIEWS["inputs"])


def test_numbers_are_of_what_was_chosen(inspected):
    everything = gather_numbers(see(inspected))
    assert everything["tokens"] == TOKENS
    assert everything["texts"] == [TEXT, None]
    assert [(one["layer"], one["head"]) for one in everything["heads"]] == [
        *((1, 1), (1, 2), (2, 1), (2, 2))
    ]
    assert all(one.keys() == {"layer", "head", "pattern", "entropy"} for one in everything["heads"])
    of_layer = gather_numbers(see(inspected, layer=2))["heads"]
    assert of_layer == everything["heads"][2:]
    view = see(inspected, layer=2, head=1)
    [head] = gather_numbers(view)["heads"]
    assert_close(torch.tensor(head["weights"]), view.weights(2)[0])
    numbers = gather_numbers(see(inspected, token="hat"))
    assert numbers["token"] == 6
    told = torch.tensor([one["weights"] for one in numbers["heads"]])
    expected = torch.cat([view.weights(layer)[:, 6] for layer in (1, 2)])
    assert_close(told, expected)


def test_in_bf16_all_views_are_there_and_weights_are_nearly_the_same(inspected, tmp_path):
    save_small(tmp_path)
    rounded = AttentionView.of(tmp_path, TEXT, precision="bf16")
    assert rounded.page.arrays.keys() == see(inspected).page.arrays.keys()
    for layer in (1, 2):
        exact = see(inspected).weights(layer)
        assert rounded.weights(layer).dtype == torch.float32
        assert_close(rounded.weights(layer), exact, within=0.02)
        assert not torch.equal(rounded.weights(layer), exact)
