"""A folder says itself in which way it summarizes."""

import json

import pytest
from tests.unit.decoders.small_encoder_decoder import save_encoder_decoder
from tests.unit.decoders.small_rewriter import save_rewriter
from tests.unit.inference.small import save_kind, save_small

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.cli.main import main
from bertkit.decoders.generation.abstractive import AbstractiveSummarizer
from bertkit.decoders.generation.extractive import CentralSummarizer
from bertkit.decoders.generation.settings import SummarySettings
from bertkit.decoders.generation.summarizer import load_summarizer
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.models.bert.fine_tuning import BertForTokenClassification

TEXT = "the cat saw a dog. a dog lost the hat! the hat. a cat saw the hat. the dog saw."


@pytest.fixture(scope="module")
def writing(tmp_path_factory):
    return save_rewriter(tmp_path_factory.mktemp("writing"), kind="summarize")


def test_the_folder_tells_the_way(tmp_path, writing):
    save_small(tmp_path / "encoder")
    assert isinstance(load_summarizer(tmp_path / "encoder"), CentralSummarizer)
    assert isinstance(load_summarizer(writing), AbstractiveSummarizer)
    save_kind(tmp_path / "task", BertForTokenClassification)
    assert isinstance(load_summarizer(tmp_path / "task"), CentralSummarizer)
    with pytest.raises(CheckpointError, match="trained to translate, not to summarize"):
        load_summarizer(save_rewriter(tmp_path / "translator"))
    save_encoder_decoder(tmp_path / "other")  # a folder of transformers
    with pytest.raises(CheckpointError, match=r"has no bertkit_seq2seq\.json"):
        load_summarizer(tmp_path / "other")


def test_what_a_model_does_not_do_is_refused(writing):
    with pytest.raises(SettingsError, match=r"generates summaries.*length; leave"):
        load_summarizer(writing, None, SummarySettings(length=2))
    with pytest.raises(SettingsError, match="doesn't compute sentence embeddings"):
        load_summarizer(writing, EmbedderSettings(engine="torch"))


def test_a_model_that_writes(writing, tmp_path, capsys):
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    named = ["--model", str(writing)]
    assert main(["summarize", str(path), *named, "--max-tokens", "3", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    model = AbstractiveSummarizer.load(writing, device="cpu")
    expected = model(TEXT, max_tokens=3, num_answers=2)
    assert found["summary"] == expected.text
    assert found["is_cut"] is True
    assert "1 summarized; 1 truncated because" in captured.err
    assert main(["summarize", str(path), *named, "--max-tokens", "3"]) == 0
    assert capsys.readouterr().out == f"{expected.text}\n"
    command = ["summarize", str(path), *named, "--max-tokens", "3", "--num-answers", "2"]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{expected.text}\n{expected.others[0].text}\n"
    assert main(["summarize", str(path), *named, "--length", "50%"]) == 2
