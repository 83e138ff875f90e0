"""The functions that predict or write words: one text gives one result, several a list."""

import inspect

import pandas as pd

import bertkit
from bertkit.cli.app import build_app, list_commands
from bertkit.inference.text_scorer import TextScorer

TEXTS = ["the cat saw a [MASK] .", "a [MASK] lost the hat"]
OBJECTIVE = {"mask_rate", "max_length", "objective", "whole_words"}
WORKERS = {"run_on", "shard", "threads", "workers"}  # of files, by several processes
# What only a terminal has; of a function the result is all, and texts are an argument.
NOT_IN_PYTHON = {
    # The function classifies by labels alone; `predict` has what a trained model takes.
    "classify": {
        *("decimal", "explain", "file", "header", "id_column", "keep_columns", "output"),
        *("output_format", "overwrite", "pair", "pair_column", "split", *WORKERS),
    },
    "embed": {"output", "overwrite", "id_column", "output_format", *WORKERS},
    "evaluate": {"output"},
    "fill-mask": {"file"},
    "generate": {"file", "stream"},
    "inspect": {"examples", "seed", *OBJECTIVE},
    "pretrain": {"dry_run"},  # a list of what it would do
    "prepare": {"revision", "shard"},
    "report": {"open"},
    "rerank": {"id_column"},
    "score": {"file"},
    "search": {"file"},
    "similarity": {"file"},
    "translate": {"file", "output", "overwrite", "references", "target_column"},
    "view": {"open", "output", "overwrite"},
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
