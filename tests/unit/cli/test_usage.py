import pytest
from tests.wings import needs

from bertkit.cli.main import main
from bertkit.cli.usage import COMMANDS_OF_OTHERS
from bertkit.tasks.table import TASKS

FINETUNE = ["finetune", "classify", "--output", "made/"]


def fails(capsys, words) -> str:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    return captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # An option that is required is missing because it is misspelled.
        ([*FINETUNE, "--trian", "a.csv"], "no option --trian; did you mean --train? (see"),
        ([*FINETUNE, "--trian=a.csv"], "no option --trian; did you mean --train? (see"),
        ([*FINETUNE, "--no-header"], "--train is missing (see"),
        ([*FINETUNE, "--train"], "--train needs a value (see"),
        # Nothing is near.
        (["embed", "a.txt", "--lora"], "no option --lora (see"),
        ([*FINETUNE, "--train", "a.csv", "--gamma", "2"], "no option --gamma (see"),
        # It is set in Python only.
        (["pretrain", "--data", "a", "--initialization", "random"], "--initialization (see"),
        # Other programs' names.
        ([*FINETUNE, "--train", "a.csv", "--lr", "1"], "did you mean --learning-rate?"),
        (["convert", "a/", "b/", "--lr", "1"], "no option --lr (see"),
        # A beginning.
        ([*FINETUNE, "--train", "a.csv", "--batch", "8"], "did you mean --batch-size?"),
    ],
)
def test_an_option_is_suggested_only_if_it_is_near(capsys, words, said):
    assert said in fails(capsys, words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train"], "`bertkit finetune` trains a model for a task"),
        pytest.param(["serv"], "did you mean `bertkit serve`?", marks=needs("serving")),
        (["frobnicate"], "no command `bertkit frobnicate` (see `bertkit --help`)"),
        (["finetune", "clasify"], "did you mean `bertkit finetune classify`?"),
        (["finetune", "ner"], f"no command `bertkit finetune ner`; there are {', '.join(TASKS)}"),
    ],
)
def test_a_command_is_suggested_only_if_it_is_near(capsys, words, said):
    assert said in fails(capsys, words)


@pytest.mark.parametrize("name", COMMANDS_OF_OTHERS)
def test_a_command_of_other_programs_is_pointed_to_ours(capsys, name):
    assert COMMANDS_OF_OTHERS[name] in fails(capsys, [name])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["search", "a", "--corpus", "b", "--top-k", "x"],
            "--top-k must be a whole number, got 'x'",
        ),
        (["fill-mask", "a", "--top-k", "0"], "--top-k must be at least 1, got 0"),
        (["similarity", "a", "b", "--similarity", "x"], "--similarity must be 'cosine', 'dot', 'e"),
        (["fill-mask", "a", "--json=x"], "--json must be true or false, got 'x' (see"),
        (
            ["fill-mask", "a", "--top-k", "3", "--top-k", "4"],
            "--top-k is given twice; give it once",
        ),
        (
            ["evaluate", "a", "b", "c"],
            "'c' is an argument too many (see `bertkit evaluate --help`)",
        ),
    ],
)
def test_what_is_wrong_with_an_option_is_said_in_words(capsys, words, said):
    assert said in fails(capsys, words)
