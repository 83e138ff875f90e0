import json
import shlex
import tomllib
from pathlib import Path

import pytest

from bertkit.base.extras import describe_install

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
