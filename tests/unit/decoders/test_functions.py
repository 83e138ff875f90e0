"""The functions that write texts: one text gives one result, several a list."""

import pytest
from tests.unit.decoders.small_rewriter import save_rewriter

import bertkit
from bertkit.base.errors import SettingsError
from bertkit.decoders.generation.extractive import ExtractiveSummary
from bertkit.decoders.generation.generator import Generator

LINES = "the cat saw a dog.\na dog lost the hat.\nthe hat lost a cat.\n"


def test_generate_takes_the_settings_of_the_command(causal_folder):
    one = bertkit.generate("the cat", model=causal_folder, max_tokens=3, num_answers=2, beams=2)
    assert one.text.startswith("the cat")
    assert len(one.answers) == 2
    loaded = Generator.load(causal_folder)
    assert bertkit.generate(["the cat"], model=loaded, max_tokens=3)[0].prompt == "the cat"
    with pytest.raises(SettingsError, match="generate has no setting beam"):
        bertkit.generate("the cat", model=causal_folder, beam=2)
    with pytest.raises(SettingsError, match="seed"):
        bertkit.generate("the cat", model=causal_folder, seed=2)


def test_translate_and_summarize_write(tmp_path):
    german = save_rewriter(tmp_path / "de-en")
    assert isinstance(bertkit.translate("the cat", model=german, beams=1).text, str)
    (tmp_path / "t.csv").write_text("de;en\nthe cat;x\na dog;y\n")
    found = bertkit.translate(tmp_path / "t.csv", model=german, text_column="de", delimiter=";")
    assert len(found) == 2
    news = save_rewriter(tmp_path / "news", kind="summarize")
    summary = bertkit.summarize(LINES, model=news, num_answers=2, beams=2)
    assert not isinstance(summary, ExtractiveSummary)
    assert len(summary.others) == 1
    assert summary._repr_html_().count("<tr>") == 3


def test_summarize_takes_a_plain_text_file_as_one_text(small_folder, tmp_path):
    (tmp_path / "article.txt").write_text(LINES)
    (summary,) = bertkit.summarize(tmp_path / "article.txt", model=small_folder, length=1)
    assert summary.text == bertkit.summarize(LINES, model=small_folder, length=1).text
    with pytest.raises(SettingsError, match="takes no --beams"):
        bertkit.summarize(LINES, model=small_folder, beams=2)
