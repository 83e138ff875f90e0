"""An encoder-decoder is loaded, reads, writes, and its three attentions are those of one pass."""

import json

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.decoders.small_encoder_decoder import save_encoder_decoder

from bertkit.base.errors import CheckpointError, DamagedFileError, InputError, SettingsError
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.detokenization import Spacing
from bertkit.decoders.generation.settings import Seq2SeqSettingsFile, write_seq2seq_file
from bertkit.decoders.inspected_model import InspectedEncoderDecoder
from bertkit.interpret import build
from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.build import pack_weights
from bertkit.interpret.inspected_model import InspectedModel, load_inspected_model
from bertkit.interpret.settings import ViewSettings
from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL

READ, WRITTEN = "the cats saw a hat", "a dog lost ."
READ_TOKENS = ["[CLS]", "the", "cat", "##s", "saw", "a", "hat", "[SEP]"]
WRITTEN_TOKENS = ["[CLS]", "a", "dog", "lost", "."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("writer") / "small"
    save_encoder_decoder(folder)
    return folder


@pytest.fixture(scope="module")
def inspected(folder):
    return InspectedEncoderDecoder.load(folder)


def see(inspected, written=WRITTEN, text=READ, **choices) -> AttentionView:
    return AttentionView.of(inspected, text, written, ViewSettings(**choices))


def test_a_folder_is_known_for_what_it_is(folder):
    assert isinstance(load_inspected_model(folder), InspectedEncoderDecoder)
    with pytest.raises(
        CheckpointError, match=r"small is an encoder-decoder, .*; a single BERT is needed"
    ):
        InspectedModel.load(folder)


@pytest.mark.parametrize("joined", [{}, {"normalizes_first": True}], ids=str)
def test_each_attention_is_between_its_texts(tmp_path, joined):
    save_encoder_decoder(tmp_path / "model", **joined)
    inspected = InspectedEncoderDecoder.load(tmp_path / "model")
    source, written = inspected.read(READ), inspected.read_target(WRITTEN)
    observed = inspected.observe(source, written)
    shapes = {name: one.layers[0].weights.shape for name, one in observed.items()}
    assert shapes == {"cross": (2, 5, 8), "encoder": (2, 8, 8), "decoder": (2, 5, 5)}
    assert [len(one.layers) for one in observed.values()] == [3, 2, 3]
    masks = [{*one.layers_by_mask} for one in observed.values()]
    assert masks == [{BIDIRECTIONAL}, {BIDIRECTIONAL}, {CAUSAL}]
    assert [len(one.states) for one in observed.values()] == [4, 3, 4]
    assert observed["cross"].encoded.tokens == WRITTEN_TOKENS
    assert observed["cross"].attended.tokens == READ_TOKENS
    for one in observed.values():
        for heads in one.layers:
            assert_close(heads.weights @ heads.value, heads.context)


def test_predicted_are_those_of_the_model(inspected):
    source, written = inspected.read(READ), inspected.read_target(WRITTEN)
    predicted = inspected.observe(source, written)["decoder"].predicted
    ids = torch.tensor([source.encoding.ids]), torch.tensor([written.encoding.ids[:-1]])
    with torch.inference_mode():
        expected = inspected.model(*ids)[0].log_softmax(dim=-1)[:, : inspected.tokenizer.vocab_size]
    assert_close(predicted.log_probabilities, expected)
    names = [inspected.tokenizer.vocabulary[id_] for id_ in predicted.ids]
    assert names == ["a", "dog", "lost", ".", "[SEP]"]


def test_it_writes_the_likeliest_words_until_it_ends_or_has_no_room(inspected, tmp_path):
    source = inspected.read(READ)
    written = inspected.write(source)
    predicted = inspected.observe(source, written)["decoder"].predicted
    allowed = predicted.log_probabilities.clone()
    never = sorted(inspected.tokenizer.special_ids - {inspected.tokenizer.sep_id})
    allowed[:, never] = -torch.inf
    assert list(predicted.ids) == allowed.argmax(dim=1).tolist()
    assert len(written.encoding.ids) <= 25  # 24 positions, and the last is written and not read
    longest = inspected.read_target("cat " * 23)  # what it could write, the end included
    assert inspected.observe(source, longest)["decoder"].layers[0].weights.shape == (2, 24, 24)
    save_encoder_decoder(tmp_path / "silent", end_bias=99.0)
    silent = InspectedEncoderDecoder.load(tmp_path / "silent")
    assert silent.write(silent.read(READ)).tokens == ["[CLS]", "[SEP]"]
    parts = AttentionView.of(silent, READ).page.data["parts"]
    assert "geometry" not in [view["name"] for view in parts[2]["views"]]  # of no word


def test_it_writes_as_its_folder_says(tmp_path):
    save_encoder_decoder(tmp_path)
    saved = Seq2SeqSettingsFile(
        kind="translate",
        decoding=DecodingSettings(beams=3),
        spacing=Spacing.fit(["a .\n"]).to_dict(),
        max_source_length=8,
        max_target_length=4,
    )
    write_seq2seq_file(tmp_path, saved)
    inspected = InspectedEncoderDecoder.load(tmp_path)
    assert inspected.saved == saved
    assert len(inspected.write(inspected.read(READ)).tokens) <= 5
    assert inspected.read_target("a dog lost").tokens == ["[CLS]", "a", "dog", "lost", "[SEP]"]
    with pytest.raises(InputError, match=r"5 tokens, and the model takes 4 \(bertkit_seq2seq\.js"):
        inspected.read_target("a dog lost .")
    with pytest.raises(InputError, match=r"9 tokens, and the model takes 8 \(bertkit_seq2seq\.js"):
        inspected.read("the cats saw a hat .")
    (tmp_path / "bertkit_seq2seq.json").write_text("{}")
    with pytest.raises(DamagedFileError):
        InspectedEncoderDecoder.load(tmp_path)


def test_an_end_that_is_no_word_is_refused(tmp_path):
    save_encoder_decoder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["eos_token_id"] = 17  # an entry of the model that no word has
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="the start or end token isn't among them"):
        InspectedEncoderDecoder.load(tmp_path)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("", WRITTEN), "the text is empty"),
        ((READ, " \n"), "the second text is empty"),
        (("cat " * 23, WRITTEN), "the text has 25 tokens, and the model takes 24"),
        ((READ, "cat " * 24), "the second text has 25 tokens, and the model takes 24"),
    ],
)
def test_texts_without_words_or_too_long_are_refused(inspected, texts, message):
    with pytest.raises(InputError, match=message):
        AttentionView.of(inspected, *texts)


def test_the_view_is_of_the_attention_that_is_chosen(inspected):
    assert see(inspected).weights(3).shape == (2, 5, 8)
    assert see(inspected, attention="encoder").tokens == READ_TOKENS
    assert see(inspected, attention="decoder").tokens == WRITTEN_TOKENS
    assert see(inspected, attention="encoder", token="hat").token == 6
    with pytest.raises(InputError, match="no token 'hat'"):
        see(inspected, token="hat")
    with pytest.raises(SettingsError, match=r"no head 3\.1: this model has layers 1 to 2"):
        see(inspected, attention="encoder", layer=3)
    assert see(inspected, layer=3).page


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"without": "1.1"}, "without is for BERTs, and small is an encoder-decoder"),
        ({"views": "brain"}, "no view 'brain'"),
    ],
)
def test_what_is_for_berts_is_refused(inspected, choices, message):
    with pytest.raises(SettingsError, match=message):
        see(inspected, **choices)


def test_the_page_has_three_parts_with_the_views_that_suit_them(inspected):
    view = see(inspected, layer=3, head=2, token="dog")
    page = view.page
    parts = {part["name"]: part for part in page.data["parts"]}
    names = {name: [one["name"] for one in part["views"]] for name, part in parts.items()}
    assert names == {
        "cross": ["alignment", "heads", "model", "neurons"],
        "encoder": ["heads", "model", "neurons", "tokens", "geometry"],
        "decoder": ["heads", "model", "neurons", "tokens", "next", "geometry"],
    }
    assert page.data["shown"] == "cross"
    assert page.data["texts"] == [READ, WRITTEN]
    assert parts["cross"]["start"]["layer"] == 3
    assert [parts[name]["startsWhole"] for name in parts] == [False, True, True]
    first = see(inspected, layer=1).page.data["parts"][0]
    assert (first["start"]["layer"], first["startsWhole"]) == (1, False)
    assert parts["cross"]["start"]["token"] == 2
    assert [token["text"] for token in parts["cross"]["others"]] == READ_TOKENS
    assert parts["decoder"]["others"] is None
    assert [part["numAllowed"] for part in parts.values()] == [[8] * 5, [8] * 8, [1, 2, 3, 4, 5]]
    alignment = parts["cross"]["views"][0]["data"]
    assert alignment["chosen"] == [*WRITTEN_TOKENS[1:], "[SEP]"]
    for name, inputs in view.parts.items():
        for array, content in pack_weights(inputs.observation.layers).items():
            assert page.arrays[f"{name}-{array}"] == content


def test_legends_say_whose_attention_it_is(inspected):
    parts = {part["name"]: part for part in see(inspected).page.data["parts"]}
    heads = {
        name: next(one for one in part["views"] if one["name"] == "heads")["legend"]
        for name, part in parts.items()
    }
    assert heads["cross"][0].startswith("A line leads from a token of the target text")
    assert heads["encoder"][0].startswith("A line leads from a token to each")
    assert heads["decoder"][-1].startswith("This is a left-to-right model")
    for view in parts["cross"]["views"]:
        legend = " ".join(view["legend"])
        assert "target" in legend, view["name"]
        assert "source" in legend, view["name"]
        assert "next token" not in legend, view["name"]  # a pattern that there can't be


def test_an_alignment_is_the_mean_of_what_is_not_chosen(inspected):
    view = see(inspected)
    figure = view.alignment()
    assert figure.title == "small, cross-attention, all layers, mean of all heads"
    assert figure.target == [*WRITTEN_TOKENS[1:], "[SEP]"]
    assert figure.source == READ_TOKENS
    whole = torch.stack([view.weights(layer) for layer in (1, 2, 3)]).mean(dim=(0, 1))
    assert_close(torch.tensor(figure.weights), whole)
    one = torch.tensor(view.alignment(3, 2).weights)
    assert_close(one, view.weights(3)[1])
    with pytest.raises(SettingsError, match=r"no head 4\.1"):
        view.alignment(4)
    for wrong in ((0,), (3, 0), (None, 0)):
        with pytest.raises(SettingsError, match="there is no head"):
            view.alignment(*wrong)
    with pytest.raises(
        SettingsError, match="an alignment needs attention from one text to another"
    ):
        see(inspected, attention="decoder").alignment()


def test_a_figure_can_show_one_token(inspected):
    figure = see(inspected).figure(3, 1, token="dog")
    assert (figure.tokens, figure.attended_tokens, figure.focus) == (WRITTEN_TOKENS, READ_TOKENS, 2)
    assert figure.title.endswith("layer 3, head 1, after “dog”, predicting “lost”")
    assert see(inspected, attention="decoder").figure(3, 1, token="dog").title.endswith("head 1")
    assert see(inspected, attention="encoder").figure(2, 1).attended_tokens is None


def test_in_bf16_weights_are_nearly_the_same(folder, inspected):
    rounded = AttentionView.of(folder, READ, WRITTEN, precision="bf16")
    assert rounded.page.render()
    exact = see(inspected).weights(1)
    assert_close(rounded.weights(1), exact, within=0.02)
    assert not torch.equal(rounded.weights(1), exact)


def test_a_page_has_room_for_so_many_weights_of_all_parts(inspected, monkeypatch):
    monkeypatch.setattr(build, "MAX_WEIGHTS", 3 * 2 * 5 * 8 + 2 * 2 * 8 * 8 + 3 * 2 * 5 * 5 - 1)
    with pytest.raises(InputError, match="would have 646 attention weights"):
        _ = see(inspected).page
