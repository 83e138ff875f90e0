import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from bertkit.base.errors import MissingExtraError
from bertkit.base.extras import PACKAGES, describe_install, describe_missing, require_package
from bertkit.base.wings import load_object
from bertkit.cli.main import main

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
METADATA = """Metadata-Version: 2.4
Name: bertkit
Version: 1
Provides-Extra: swim
Requires-Dist: numpy>=2.0
Requires-Dist: goggles<9,>=1.19; extra == "swim"
Requires-Dist: fins>=1; (sys_platform != "win32") and extra == "swim"
Requires-Dist: skis; extra == 'swimming'
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Another installation of bertkit, found before ours."""
    info = tmp_path / "site" / "bertkit-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return info


def test_of_a_wheel_the_packages_are_named(installed):
    command = describe_install("swim")
    assert command == "pip install 'goggles<9,>=1.19' 'fins>=1'"
    assert shlex.split(command)[2:] == ["goggles<9,>=1.19", "fins>=1"]


@pytest.mark.parametrize("is_there", [True, False])
def test_of_a_clone_its_folder_is_named_while_it_is_there(installed, tmp_path, is_there):
    clone = tmp_path / "my clone"
    clone.mkdir()
    if is_there:
        (clone / "pyproject.toml").write_text("")
    origin = {"url": clone.as_uri(), "dir_info": {"editable": True}}
    (installed / "direct_url.json").write_text(json.dumps(origin))
    command = describe_install("swim")
    assert command.startswith("pip install '.[swim]'" if is_there else "pip install 'goggles")
    assert command.endswith(f" in {clone}" if is_there else "'fins>=1'")


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_of_ours_can_be_installed_by_its_command(extra):
    command = describe_install(extra)
    names = [one.partition(";")[0].strip() for one in EXTRAS[extra]]
    assert f"'.[{extra}]' in " in command or shlex.split(command)[2:] == names


def test_no_message_installs_bertkit_from_pypi():
    """It isn't there; messages use `describe_install`."""
    pages = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    wrong = [page.name for page in pages if "pip install 'bertkit" in page.read_text("utf-8")]
    assert wrong == []


@pytest.mark.parametrize("module", PACKAGES)
def test_a_package_of_an_extra_is_named_with_its_command(monkeypatch, module):
    require_package(module, "this")
    monkeypatch.setitem(sys.modules, module, None)
    name, extra = PACKAGES[module]
    with pytest.raises(MissingExtraError, match=f"^reading it needs {name}, which isn't") as told:
        require_package(module, "reading it")
    assert str(told.value).endswith(describe_install(extra))
    assert any(one.startswith(module) for one in EXTRAS[extra])


@pytest.mark.parametrize("module", PACKAGES)
def test_training_has_all_of_them(module):
    assert any(one.startswith(module) for one in EXTRAS["train"])


def test_an_object_whose_package_is_missing_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "bertkit.nn.block", raising=False)
    with pytest.raises(MissingExtraError, match=r"^Block needs PyTorch"):
        load_object("bertkit.nn.block:Block")


@pytest.mark.parametrize(
    "line",
    [
        "embed rows.parquet --text-column text --output vectors.npy",
        "embed rows.csv --text-column text --output vectors.parquet",
        "summarize rows.parquet",
        "prepare rows.csv --tokenizer vocab.txt --output out",
        "train-tokenizer rows.parquet --output out",
    ],
)
def test_parquet_and_the_words_of_a_corpus_need_pyarrow(monkeypatch, capsys, tmp_path, line):
    monkeypatch.chdir(tmp_path)
    for name in ("rows.parquet", "rows.csv"):
        Path(name).write_text("text\nword\n")
    Path("vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(line.split()) == 2
    told = capsys.readouterr().err
    assert describe_missing("pyarrow", "") in told
    assert "computing on" not in told  # before a model is loaded


def test_a_zst_file_needs_its_package_before_a_model_is_loaded(monkeypatch, capsys, tmp_path):
    path = tmp_path / "texts.txt.zst"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert main(["embed", str(path), "--output", str(tmp_path / "vectors.npy")]) == 2
    told = capsys.readouterr().err
    assert describe_missing("zstandard", str(path)) in told
    assert "computing on" not in told
