"""A folder says itself in which way it summarizes; a trained model's own sentences come first."""

import json

import pytest
from tests.unit.inference.small import save_kind, save_small
from tests.unit.inference.small_encoder_decoder import save_encoder_decoder
from tests.unit.inference.small_rewriter import save_rewriter

from bertkit.base.errors import CheckpointError, DamagedFileError, InputError, SettingsError
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.cli.main import main
from bertkit.decoders.generation.extractive import CentralSummarizer, SummaryCounts
from bertkit.decoders.generation.settings import SummarySettings
from bertkit.decoders.generation.summarizer import (
    AbstractiveSummarizer,
    TrainedSummarizer,
    load_summarizer,
)
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.models.bert.fine_tuning import BertForTokenClassification
from bertkit.tasks.extract import ExtractSettings
from bertkit.tasks.extract.task import Extract
from bertkit.tasks.saved import save_task

TEXT = "the cat saw a dog. a dog lost the hat! the hat. a cat saw the hat. the dog saw."


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    save_kind(folder, BertForTokenClassification)
    save_task(folder, Extract(ExtractSettings(max_length=20, sentences=2)))
    return folder


@pytest.fixture(scope="module")
def writing(tmp_path_factory):
    return save_rewriter(tmp_path_factory.mktemp("writing"), kind="summarize")


def test_the_folder_tells_the_way(tmp_path, trained, writing):
    save_small(tmp_path)
    assert isinstance(load_summarizer(tmp_path), CentralSummarizer)
    assert isinstance(load_summarizer(trained), TrainedSummarizer)
    assert isinstance(load_summarizer(writing), AbstractiveSummarizer)


def test_a_model_for_another_task_is_an_encoder(tmp_path):
    save_kind(tmp_path, BertForTokenClassification)
    assert isinstance(load_summarizer(tmp_path), CentralSummarizer)


def test_a_translator_is_no_summarizer(tmp_path):
    with pytest.raises(CheckpointError, match="trained to translate, not to summarize"):
        load_summarizer(save_rewriter(tmp_path))


def test_a_folder_of_transformers_that_writes_is_no_summarizer(tmp_path):
    save_encoder_decoder(tmp_path)
    with pytest.raises(CheckpointError, match=r"has no bertkit_seq2seq\.json"):
        load_summarizer(tmp_path)


def test_a_damaged_record_is_told(tmp_path, trained):
    save_small(tmp_path)
    content = (trained / TASK_FILE).read_text()
    (tmp_path / TASK_FILE).write_text(content.replace('"extract"', '"classify"'))
    with pytest.raises(DamagedFileError):
        load_summarizer(tmp_path)


def test_what_a_model_does_not_do_is_refused(trained, writing):
    with pytest.raises(SettingsError, match=r"no pooling; leave that out"):
        load_summarizer(trained, EmbedderSettings(pooling=("cls",)))
    with pytest.raises(SettingsError, match="diversity is for encoders"):
        load_summarizer(trained, None, SummarySettings(diversity=0.3))
    with pytest.raises(SettingsError, match=r"generates summaries.*sentences; leave"):
        load_summarizer(writing, None, SummarySettings(sentences=2))
    with pytest.raises(SettingsError, match="doesn't compute sentence embeddings"):
        load_summarizer(writing, EmbedderSettings(engine="torch"))


def test_a_trained_model_takes_the_likeliest_sentences(trained):
    summarize = TrainedSummarizer.load(trained, device="cpu")
    found = summarize.extractor(TEXT)
    summary = summarize(TEXT)
    assert len(summary.sentences) == 2  # as in training
    assert summary.text == found.summary
    likeliest = max(found.sentences, key=lambda sentence: sentence.probability)
    first = min(summary.sentences, key=lambda sentence: sentence.rank)
    assert (first.number, first.relevance) == (likeliest.number, likeliest.probability)
    assert all(TEXT[one.start : one.stop] == one.text for one in summary.sentences)


def test_how_many_it_takes_can_be_chosen(trained):
    def count(**choices: object) -> int:
        return len(summarize(TEXT, **choices).sentences)

    summarize = TrainedSummarizer.load(trained, device="cpu")

    assert count(sentences=1) == 1
    assert not summarize(TEXT, words=3).is_short
    assert count(share=0.6) == 3
    assert count(words=3) == 1
    assert summarize(TEXT, sentences=1, position=1.0).text == "the cat saw a dog."


def test_sentences_with_three_words_in_common_are_not_both_taken(trained):
    summarize = TrainedSummarizer.load(trained, device="cpu").with_options(sentences=9)
    text = f"{TEXT} and the cat saw a dog. the hat!"
    counts = SummaryCounts()
    (summary,) = summarize.stream([text], counts=counts)
    numbers = {sentence.number for sentence in summary.sentences}
    assert (summary.is_short, counts.short, counts.whole) == (True, 1, 0)
    assert numbers in ({1, 2, 3, 4, 5}, {2, 3, 4, 5, 6})  # and 7 says what 3 does


def test_odd_texts_and_their_counts(trained):
    counts = SummaryCounts()
    summarize = TrainedSummarizer.load(trained, device="cpu")
    texts = ["", TEXT, "* * *", "the cat.", "the " * 40 + "."]
    found = list(summarize.stream(texts, counts=counts))
    assert [len(summary.sentences) for summary in found] == [0, 2, 0, 1, 1]
    assert (counts.texts, counts.empty, counts.whole, counts.truncated) == (5, 2, 2, 1)
    list(summarize.stream(texts, counts=counts))
    assert (counts.texts, counts.truncated) == (10, 2)
    with pytest.raises(InputError, match="expected a text"):
        list(summarize.stream([3]))


def test_a_model_that_writes(writing, tmp_path, capsys):
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    assert main(["summarize", str(writing), str(path), "--max-tokens", "3", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    model = AbstractiveSummarizer.load(writing, device="cpu")
    expected = model(TEXT, max_tokens=3, num_answers=2)
    assert found["summary"] == expected.text
    assert found["is_cut"] is True
    assert "1 summarized; 1 truncated because" in captured.err
    assert main(["summarize", str(writing), str(path), "--max-tokens", "3"]) == 0
    assert capsys.readouterr().out == f"{expected.text}\n"
    command = ["summarize", str(writing), str(path), "--max-tokens", "3", "--num-answers", "2"]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{expected.text}\n{expected.others[0].text}\n"
    assert main(["summarize", str(writing), str(path), "--share", "0.5"]) == 2
    assert main(["summarize", str(writing), str(path), "--why"]) == 2
    assert "--why is for extracted sentences" in capsys.readouterr().err


def test_language_and_engine_are_the_models_or_chosen(tmp_path, trained):
    save_kind(tmp_path, BertForTokenClassification)
    save_task(tmp_path, Extract(ExtractSettings(max_length=20, language="ja")))
    assert TrainedSummarizer.load(tmp_path).options.language == "ja"
    chosen = SummarySettings(language="de", words=9)
    loaded = load_summarizer(tmp_path, EmbedderSettings(engine="torch"), chosen)
    assert isinstance(loaded, TrainedSummarizer)
    assert (loaded.options, loaded.extractor.engine.name) == (chosen, "torch")
