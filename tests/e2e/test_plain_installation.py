"""What predicts works in an environment with nothing but a plain installation and the server."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.predicting import COMMANDS, answer_request, make_models

pytestmark = pytest.mark.exhaustive
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a virtual environment that has what `pip install` brings."""
    folder = tmp_path_factory.mktemp("plain")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python, constraints = folder / "venv" / "bin" / "python", ROOT / "constraints.txt"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    known = [*pip, "download", "--no-deps", "--dest", folder, "--constraint", constraints, "rich"]
    reached = subprocess.run(known, capture_output=True, text=True)
    if reached.returncode:
        pytest.skip(f"no packages can be had here: {reached.stderr.strip().splitlines()[-1]}")
    ours = [f"{ROOT}[serve]", ROOT / "models" / "minilm"]
    subprocess.run([*pip, "install", "--constraint", constraints, *ours], check=True)
    return str(python)


@pytest.fixture(scope="module")
def environment():
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    make_models(folder)
    return folder


@pytest.mark.parametrize("module", ["torch", "pyarrow", "zstandard", "onnx", "onnxruntime"])
def test_it_has_none_of_what_extras_bring(python, environment, module):
    words = [python, "-c", f"import {module}"]
    result = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert f"No module named '{module}'" in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_predicts(python, environment, models, name):
    words = [python, "-m", "bertkit", *shlex.split(COMMANDS[name])]
    result = subprocess.run(words, cwd=models, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "{" in result.stdout or "--json" not in words


def test_the_server_answers(python, environment, models):
    assert answer_request(python, models, environment) == {"good", "bad"}


def test_training_is_refused_with_the_command_that_installs_it(python, environment, models):
    words = [python, "-m", "bertkit", "finetune", "classify", "--train", "no.csv", "--output", "a"]
    result = subprocess.run(words, cwd=models, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    command = f"pip install '.[train]' in {ROOT}"
    message = f"`bertkit finetune classify` needs PyTorch, which isn't installed; {command}"
    assert result.stderr == f"bertkit: {message}\n"
