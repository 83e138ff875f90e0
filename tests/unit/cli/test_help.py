import pytest
from tests.wings import needs, needs_all_wings

from bertkit.cli.app import build_app, list_commands
from bertkit.cli.help import OFTEN, RARE, list_options
from bertkit.cli.main import main

MAX_SHOWN = 25
COMMANDS = list_commands(build_app())
OPTIONS = {name: list_options(command) for name, command in COMMANDS.items()}


def read_help(capsys, words: str, flag: str) -> str:
    assert main([*words.split(), flag]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_at_most_25_options(name):
    assert len(OPTIONS[name] - (RARE - OFTEN.get(name, frozenset()))) <= MAX_SHOWN


def test_help_leaves_out_rare_options_and_says_where_they_are(capsys):
    shown = read_help(capsys, "finetune classify", "--help")
    assert "--epochs" in shown
    assert "--warmup" not in shown
    assert "`bertkit finetune classify --help-all` shows them" not in shown  # it is Markdown
    assert "bertkit finetune classify --help-all shows them" in " ".join(shown.split())
    whole = read_help(capsys, "finetune classify", "--help-all")
    assert "--epochs" in whole
    assert "--warmup" in whole


@needs("decoders")
def test_the_list_of_what_finetune_trains_says_what_each_is_for(capsys):
    shown = read_help(capsys, "finetune", "--help")
    assert "classify  Train a model to classify texts" in shown
    assert "summarize  Train a summarization model on texts" in shown


def test_a_rare_option_works_as_any_other(capsys):
    words = ["finetune", "classify", "--train", "missing.csv", "--output", "x", "--warmup", "2"]
    assert main(words) == 2
    assert "--warmup" in capsys.readouterr().err


def test_help_all_of_a_word_behind_two_dashes_is_a_text(capsys):
    main(["fill-mask", "--", "--help-all"])
    assert "Usage" not in capsys.readouterr().out


@needs_all_wings
def test_every_rare_option_is_one_of_some_command():
    assert sorted(RARE - set().union(*OPTIONS.values())) == []
    assert all(names <= RARE for names in OFTEN.values())
