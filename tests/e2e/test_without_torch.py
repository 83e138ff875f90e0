"""What predicts works where no process can import PyTorch."""

import json
import os
import re
import subprocess
import sys

import pytest
from tests.e2e.predicting import COMMANDS, answer_request, make_models

# Python runs it before anything else, in the server's workers too.
REFUSAL = """
import sys


class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


sys.meta_path.insert(0, Refusal())
"""
# What needs it, by the words after `bertkit`; no file that they name exists.
DOORS = {
    "pretrain --data no --output no": "`bertkit pretrain`",
    "finetune classify --train no --output no": "`bertkit finetune classify`",
    "finetune summarize --train no --output no": "`bertkit finetune summarize`",
    "review no": "`bertkit review`",
    "report no": "`bertkit report`",
    "generate no x": "`bertkit generate`",
    "translate no x": "`bertkit translate`",
    "view x --model no": "`bertkit view`",
    "attention x --model no": "`bertkit attention`",
    "demo --output no": "`bertkit demo`",
    "next-word no x": "`bertkit next-word`",
    "study size --data no --output no": "`bertkit study size`",
    "study skip-gram --data no --output no": "`bertkit study skip-gram`",
    "study skip-thought no x --file no": "`bertkit study skip-thought`",
    "score --data no": "`bertkit score --data`",
    "similarity a b --engine torch": "the engine torch",
    "similarity a b --device cuda": "the device cuda",
}
RUN_ALL = """
import contextlib, io, json, shlex, sys
from bertkit.cli.main import main
found = {}
for name, words in json.load(sys.stdin).items():
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = main(shlex.split(words))
    found[name] = code, out.getvalue()
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("without_torch")
    make_models(folder)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusal")
    (folder / "sitecustomize.py").write_text(REFUSAL)
    paths = (str(folder), os.environ.get("PYTHONPATH", ""))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_each(commands, folder, environment):
    """The exit code and the output of each command, which one process runs."""
    words, given = [sys.executable, "-c", RUN_ALL], json.dumps(commands)
    done = subprocess.run(
        words, input=given, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answers(models, environment):
    return run_each(COMMANDS, models, environment)


@pytest.fixture(scope="module")
def refusals(tmp_path_factory, environment):
    folder = tmp_path_factory.mktemp("refused")
    return run_each({words: words for words in DOORS}, folder, environment)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_predicts_without_torch(answers, name):
    code, output = answers[name]
    assert code == 0, output
    assert "{" in output or "--json" not in COMMANDS[name]


@pytest.mark.parametrize("words", DOORS)
def test_what_needs_torch_says_so_before_it_looks_for_files(refusals, words):
    code, output = refusals[words]
    message = rf"bertkit: {re.escape(DOORS[words])} needs PyTorch, which isn't installed; pip in"
    assert re.match(message, output.splitlines()[-1]), output
    assert code == 2


def test_the_server_answers_without_torch(models, environment):
    assert answer_request(sys.executable, models, environment) == {"good", "bad"}


def test_an_import_of_torch_fails(environment):
    words = [sys.executable, "-c", "import torch"]
    result = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert "No module named 'torch'" in result.stderr
