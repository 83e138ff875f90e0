"""What type checkers and editors know of the functions: a file of a user, checked by mypy."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bertkit
from bertkit.base.wings import TEXT_TASKS, has_wing, load_object
from bertkit.recipes.finetune.settings import FineTuneSettings

FUNCTIONS = [name for name in bertkit.__all__ if inspect.isfunction(getattr(bertkit, name))]


def find_function(call: str) -> str:
    """The function of a call; that of a wing isn't there where the wing is deleted."""
    return call.partition("(")[0].removeprefix("bertkit.")


RIGHT = {
    'bertkit.embed(["a"], pooling=("cls",), text_column="t", max_length=9)': "numpy.ndarray",
    "bertkit.embed(rows, model=bertkit.Embedder.load())": "numpy.ndarray",
    'bertkit.similarity("a", "b", similarity="dot")': "float",
    'bertkit.similarity(["a", "b"])': "numpy.ndarray",
    'bertkit.search("q", ["a"], top_k=3)': "list[bertkit.retrieval.hits.Hit]",
    'bertkit.search(["q"], Path("f"))': "list[list[bertkit.retrieval.hits.Hit]]",
    'bertkit.fill_mask("a", targets=["b"])': "bertkit.inference.fill_mask.FilledText",
    'bertkit.score(["a"])': "list[bertkit.inference.text_scorer.TextScore]",
    'bertkit.summarize("a", length=2, beams=3)': "ExtractiveSummary",
    'bertkit.finetune("tag", train=rows, scheme="plain")': "bertkit.inference.predictor.Tagger",
    'bertkit.finetune("translate", train=[Path("f")])': "Any",
    "bertkit.finetune(task, train=rows)": "Predictor[Any, Any, Any]",
    'bertkit.predict("m", rows, label_column="l", top_k=2)': "list[Any]",
    'bertkit.evaluate("m", rows, split="test")': "bertkit.recipes.evaluate.result.EvaluateResult",
    'bertkit.score(minimal_pairs="f")': "bertkit.inference.minimal_pairs.PairsResult",
    'bertkit.score(data="shards/", model="m")': "HeldOutResult",
    'bertkit.view("a", "b", layer=2)': "AttentionView",
    "bertkit.pretrain(rows, steps=5, on_step=lambda step, values: print(step))": "PretrainResult",
}
RIGHT = {call: kind for call, kind in RIGHT.items() if find_function(call) in FUNCTIONS}
WRONG = {
    'bertkit.embed(["a"], pool="cls")': 'Unexpected keyword argument "pool"',
    'bertkit.embed(["a"], max_length="x")': 'Argument "max_length" to "embed" has incompatible',
    'bertkit.similarity("a")': "No overload variant",
    'bertkit.generate("a")': "No overload variant",
    'bertkit.score(model="m", data="s", minimal_pairs="f")': "No overload variant",
    "bertkit.train_tokenizer(rows, vocab_size=None)": 'Argument "vocab_size"',
}
WRONG = {call: told for call, told in WRONG.items() if find_function(call) in FUNCTIONS}
# Keywords of `finetune` for tasks of a wing, which checkers know as any keyword.
OF_WINGS = {
    name
    for task in TEXT_TASKS.values()
    if has_wing(task.settings)
    for name in load_object(task.settings).model_fields.keys() - FineTuneSettings.model_fields
}
# Nothing is asked about them, and reading them takes most of the time.
SKIPPED = ("torch", "pyarrow", "transformers", "huggingface_hub", "cyclopts", "rich", "pandas")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What mypy says of each line of a user's file."""
    folder = tmp_path_factory.mktemp("user")
    calls = [*(f"bertkit.{name}" for name in FUNCTIONS), *RIGHT]
    lines = [
        "from pathlib import Path",
        "import bertkit",
        'rows: list[str] = ["a"]',
        'task: str = "tag"',
        *(f"reveal_type({call})" for call in calls),
        *WRONG,
    ]
    (folder / "user.py").write_text("\n".join(lines))
    skipped = ",".join(f"{name}.*" for name in SKIPPED)
    (folder / "mypy.ini").write_text(
        f"[mypy]\nstrict = True\nfollow_imports = silent\n[mypy-{skipped}]\nfollow_imports = skip\n"
    )
    home = Path(bertkit.__file__).parents[1]
    path = {} if home.name == "site-packages" else {"MYPYPATH": str(home)}
    command = [sys.executable, "-m", "mypy", "--no-pretty", "user.py"]
    checked = subprocess.run(
        command, cwd=folder, env=os.environ | path, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 1, checked.stdout + checked.stderr
    found: dict[str, str] = {}
    for line in checked.stdout.splitlines():
        if match := re.match(r"user\.py:(\d+): (?:note|error): (.*)", line):
            found.setdefault(lines[int(match[1]) - 1], match[2])
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_checker_knows_all_keywords_of_a_function(name, told):
    shown = inspect.signature(getattr(bertkit, name)).parameters.values()
    keywords = {each.name for each in shown if each.kind is each.KEYWORD_ONLY} - OF_WINGS
    known = set(re.findall(r"(\w+)'?\??: ", told[f"reveal_type(bertkit.{name})"].partition(" ")[2]))
    assert keywords <= known
    assert known - keywords <= {"arguments", "settings"} | {
        each.name for each in shown
    }  # of any task


@pytest.mark.parametrize(("call", "kind"), RIGHT.items())
def test_a_right_call_has_the_type_of_its_result(call, kind, told):
    assert told[f"reveal_type({call})"].startswith('Revealed type is "')
    assert kind in told[f"reveal_type({call})"]


@pytest.mark.parametrize(("call", "message"), WRONG.items())
def test_a_wrong_call_is_an_error(call, message, told):
    assert message in told[call]


def test_every_setting_names_its_default():
    """Checkers know a default by its name alone; the field would be required."""
    for path in Path(bertkit.__file__).parent.rglob("*.py"):
        assert not re.search(r"\bField\((?!\s*(\w+\s*=|\)))", path.read_text("utf-8")), path
