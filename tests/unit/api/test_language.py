"""The functions that predict or write words: one text gives one result, several a list."""

import inspect

import pandas as pd
import pytest
from tests.unit.inference.small_rewriter import save_rewriter

import bertkit
from bertkit.base.errors import SettingsError
from bertkit.cli.main import build_app, list_commands
from bertkit.decoders.generation.extractive import ExtractiveSummary
from bertkit.decoders.generation.generator import Generator
from bertkit.inference.text_scorer import TextScorer
from bertkit.tasks.objectives.settings import ObjectiveSettings

TEXTS = ["the cat saw a [MASK] .", "a [MASK] lost the hat"]
LINES = "the cat saw a dog.\na dog lost the hat.\nthe hat lost a cat.\n"
WORKERS = {"address", "run_on", "shard", "threads", "workers"}  # of files, by several processes
# What only a terminal has; of a function the result is all, and texts are an argument.
NOT_IN_PYTHON = {
    "benchmark-pretrain": {"from"},  # start_from
    "embed": {"output", "overwrite", "restart", "id_column", "output_format", *WORKERS},
    "evaluate": {"output"},
    "fill-mask": {"file"},
    "generate": {"file", "stream"},
    "inspect": {"examples", "seed", *ObjectiveSettings.model_fields},
    "pretrain": {"from", "dry_run"},  # start_from, and a list of what it would do
    "prepare": {"held_out_inputs", "revision", "shard"},
    "report": {"open"},
    "score": {"file"},
    "search": {"file"},
    "similarity": {"file"},
    "summarize": {"why"},
    "translate": {"file", "output", "overwrite", "references", "reference_column"},
    "view": {"open", "output", "overwrite", "png", "svg"},
}


def test_a_function_takes_the_flags_of_its_command():
    commands = {name.replace(" ", "-"): one for name, one in list_commands(build_app()).items()}
    for name in bertkit.__all__:
        function, command = getattr(bertkit, name), commands.get(name.replace("_", "-"))
        if not inspect.isfunction(function) or command is None:
            continue
        arguments = command.assemble_argument_collection(parse_docstring=True)
        flags = {one.name for one in arguments if one.show and one.name.startswith("--")}
        keys = {flag.removeprefix("--").replace("-", "_") for flag in flags} - {"json"}
        left_out = NOT_IN_PYTHON.get(name.replace("_", "-"), set())
        assert keys - set(inspect.signature(function).parameters) == left_out, name


def test_one_text_gives_one_result_and_several_a_list(model, tmp_path):
    one = bertkit.fill_mask(TEXTS[0], model=model, top_k=2)
    several = bertkit.fill_mask(TEXTS, model=model, top_k=2)
    assert [each.text for each in several] == TEXTS
    assert one.filled == several[0].filled
    assert f"<td>{several[1].filled}</td>" in several._repr_html_()
    assert len(one.blanks[0]) == 2
    rows = pd.DataFrame({"body": TEXTS})
    assert bertkit.fill_mask(rows, model=model, text_column="body")[1].filled == several[1].filled
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    assert len(bertkit.fill_mask(tmp_path / "texts.txt", model=model)) == 2


def test_score_and_next_sentence_give_what_their_classes_give(model):
    scorer = TextScorer.load(model)
    expected = scorer(["the cat saw", "a hat"])
    found = bertkit.score(["the cat saw", "a hat"], model=model)
    assert [one.log_probability for one in found] == [one.log_probability for one in expected]
    assert bertkit.score("the cat saw", model=scorer).text == "the cat saw"
    follows = bertkit.next_sentence("the cat saw", "a hat .", model=model, precision="fp32")
    predict = bertkit.NextSentence.load(model, precision="fp32")
    assert follows == predict(("the cat saw", "a hat ."))


def test_a_loaded_model_refuses_options_of_loading(model):
    scorer = TextScorer.load(model)
    with pytest.raises(SettingsError, match=r"has its precision; give that to TextScorer\.load"):
        bertkit.score("the cat", model=scorer, precision="bf16")


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


def test_summarize_takes_a_plain_text_file_as_one_text(model, tmp_path):
    (tmp_path / "article.txt").write_text(LINES)
    (summary,) = bertkit.summarize(tmp_path / "article.txt", model=model, sentences=1)
    assert summary.text == bertkit.summarize(LINES, model=model, sentences=1).text
    with pytest.raises(SettingsError, match="takes no beams"):
        bertkit.summarize(LINES, model=model, beams=2)
