"""Every door either computes what a left-to-right model means, or refuses it in a line.

So it is with an encoder-decoder.
"""

import json
import shutil

import pytest
import torch
from tests.closeness import assert_close, close

import bertkit
from bertkit.base import wings
from bertkit.base.errors import CheckpointError, MissingExtraError
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.jobs.convert import convert
from bertkit.jobs.export import export
from bertkit.jobs.inspect import describe
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.models.open_model import OpenModel
from bertkit.nn.packing import PackedBatch
from bertkit.recipes.pretrain.job import find_objective
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.tokenizer import Tokenizer

BOTH_WAYS = {
    "BertModel": bertkit.BertModel.from_pretrained,
    "BertForMaskedLM": bertkit.BertForMaskedLM.from_pretrained,
    "embed": bertkit.Embedder.load,
    "features": bertkit.FeatureExtractor.load,
    "fill-mask": bertkit.FillMask.load,
    "nearest": bertkit.WordVectors.load,
    "next-sentence": bertkit.NextSentence.load,
}
OTHERS = {
    **BOTH_WAYS,
    "predict": bertkit.Predictor.load,
    "BertLMHeadModel": BertLMHeadModel.from_pretrained,
    "generate": bertkit.Generator.load,
    "score": bertkit.TextScorer.load,
    "BertForSequenceClassification": bertkit.BertForSequenceClassification.from_pretrained,
}


@pytest.fixture(scope="module")
def joined(causal_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("joined")
    torch.manual_seed(0)
    config = BertLMHeadModel.from_pretrained(causal_folder).config
    both = EncoderDecoderConfig.of(config, start_id=2, end_id=3, shares_embeddings=True)
    EncoderDecoderModel(both).save_pretrained(folder)
    Tokenizer.load(causal_folder).save(folder)
    return folder


@pytest.mark.parametrize("door", BOTH_WAYS)
def test_what_reads_both_ways_refuses_a_left_to_right_model(causal_folder, door):
    with pytest.raises(CheckpointError, match=r"reads left to right \(is_decoder\)") as error:
        BOTH_WAYS[door](causal_folder)
    assert "\n" not in str(error.value)


def test_without_its_wing_no_other_objective_is_taken_for_that_of_a_model(
    causal_folder, monkeypatch
):
    opened = OpenModel.open(causal_folder)
    assert find_objective(opened) == "causal"
    monkeypatch.delitem(OBJECTIVES, "causal")
    monkeypatch.setattr(wings, "has_wing", lambda address: "decoders" not in address)
    with pytest.raises(MissingExtraError, match=r"needs bertkit\.decoders, which isn't installed"):
        find_objective(opened)


@pytest.mark.parametrize("door", OTHERS)
def test_whatever_takes_a_bert_refuses_an_encoder_decoder_by_name(joined, door):
    with pytest.raises(CheckpointError, match="is an encoder-decoder, for") as error:
        OTHERS[door](joined)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("write", [convert, export])
def test_nothing_is_written_of_an_encoder_decoder(joined, tmp_path, write):
    with pytest.raises(CheckpointError, match="is an encoder-decoder"):
        write(joined, tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_a_converted_model_keeps_its_direction(causal_folder, tmp_path):
    result = convert(causal_folder, tmp_path / "output")
    assert result.architecture == "BertLMHeadModel"
    config = json.loads((tmp_path / "output" / "config.json").read_text())
    assert config["is_decoder"] is True
    ids = torch.tensor([[2, 5, 6, 7, 3]])
    found, expected = map(BertLMHeadModel.from_pretrained, (tmp_path / "output", causal_folder))
    assert torch.equal(found(ids), expected(ids))


def test_nothing_is_exported_left_to_right(causal_folder, tmp_path):
    with pytest.raises(CheckpointError, match="left to right"):
        export(causal_folder, tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_a_left_to_right_model_is_described(causal_folder):
    description = describe(causal_folder)
    assert description.problems == ()
    assert description.architecture == "BertLMHeadModel"
    assert description.heads == ("masked_lm",)
    assert description.config["is_decoder"] is True
    parameters = BertLMHeadModel.from_pretrained(causal_folder).parameters()
    assert description.num_parameters == sum(each.numel() for each in parameters)


def test_an_encoder_decoder_is_described_with_and_without_weights(joined, tmp_path):
    description = describe(joined)
    model = EncoderDecoderModel.from_pretrained(joined)
    sides, ends = ("encoder", "decoder"), ("embeddings", "layers")
    parts = [f"{side}.{end}" for side in sides for end in ends]
    assert sorted(description.parameters) == sorted([*parts, "masked_lm"])
    assert description.num_parameters == sum(each.numel() for each in model.parameters())
    assert description.problems == ()
    assert description.architecture == "EncoderDecoderModel"
    assert description.num_attention_heads == 4 + 8
    assert description.tokenizer["entries"] == 15
    shutil.copy(joined / "config.json", tmp_path)
    planned = describe(tmp_path)
    assert "has no model.safetensors" in planned.problems[0]
    assert sorted(planned.parameters) == sorted([*parts, "masked_lm"])


def test_what_is_wrong_with_an_encoder_decoder_is_listed(joined, tmp_path):
    folder = shutil.copytree(joined, tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text())
    config["decoder"]["num_hidden_layers"] = 1
    config["encoder"]["intermediate_size"] = 17
    (folder / "config.json").write_text(json.dumps(config))
    problems = "; ".join(describe(folder).problems)
    assert "unknown decoder.bert.encoder.layer.1." in problems
    assert "encoder.encoder.layer.0.intermediate.dense.weight" in problems
    config["decoder"]["hidden_size"] = 10
    (folder / "config.json").write_text(json.dumps(config))
    assert "hidden_size" in describe(folder).problems[0]


def test_a_task_reads_left_to_right_by_the_last_token(causal_folder):
    kind = bertkit.BertForSequenceClassification
    model = kind.from_pretrained(causal_folder, new_heads=True, num_labels=3)
    one, other = map(PackedBatch.from_single, ([[2, 5, 6, 3], [2, 7, 3]], [[2, 5, 6, 7]]))
    states = model.states(one)
    expected = model.classifier(model.pooler.dense(states[[3, 6]]).tanh())
    assert_close(model.scores(one), expected)
    assert model.scores(one)[:1] != close(model.scores(other))
