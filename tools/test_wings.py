"""Test what is left without a wing: in a copy of the project, for each wing in turn.

    python tools/test_wings.py [--whole] [WING ...]

In the copy, where the wing's folder is deleted, the floors hold, each module can be imported, each
test module can be collected, and the tests of the core and of the other wings pass: with `--whole`
all that `make test` runs, otherwise those of `QUICK`, which take a minute. No table names
`integrations`, so there imports and collection show all that its absence can change.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
WINGS = ("decoders", "integrations", "interpret", "serving")
NOT_COPIED = shutil.ignore_patterns(
    ".git",
    ".venv",
    ".cache",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "_build",
    "build",
    "dist",
    "results",
)
QUICK = (
    *("unit/base/test_wings.py", "unit/test_house.py", "unit/cli", "unit/api/test_language.py"),
    *("e2e/test_refusals.py", "e2e/test_streams.py"),
    *("unit/decoders", "unit/interpret", "unit/serving"),
)
# Of those, what takes longest and knows no other wing.
SLOW = ("unit/decoders/decoding", "unit/decoders/seq2seq", "unit/serving/test_api_conformance.py")
COLLECTED = re.compile(r"tests/\S+: \d+")  # a file and its number of tests
IMPORT_ALL = """
import importlib, pkgutil, bertkit
for module in pkgutil.walk_packages(bertkit.__path__, "bertkit."):
    if module.name == "bertkit.__main__":
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:  # a wing's file that only the missing wing loads
        if module.name.split(".")[1] not in WINGS or error.name.split(".")[0] != "bertkit":
            raise
"""


def main() -> int:
    """Test each wing's absence; return 1 if anything fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("wings", nargs="*", choices=[*WINGS, []], metavar="WING")
    parser.add_argument("--whole", action="store_true", help="run all tests of `make test`")
    arguments = parser.parse_args()
    failed = []
    for wing in arguments.wings or WINGS:
        with tempfile.TemporaryDirectory() as folder:
            copy = copy_without(wing, Path(folder) / "bertkit")
            for name, words in list_steps(copy, wing, is_whole=arguments.whole):
                print(f"== without {wing}: {name}", flush=True)
                if run(words, copy):
                    failed.append(f"without {wing}: {name}")
    print("\n".join(["failed:", *failed] if failed else ["passed without any one wing"]))
    return 1 if failed else 0


def copy_without(wing: str, copy: Path) -> Path:
    """Copy the project without a wing's folder and the exceptions for its imports."""
    shutil.copytree(TOP, copy, ignore=NOT_COPIED)
    shutil.rmtree(copy / "src" / "bertkit" / wing)
    project = copy / "pyproject.toml"
    lines = project.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if f'"bertkit.{wing}' not in line]
    # what isn't there is found to be imported from the package above it
    content = "\n".join(kept).replace(f"-> bertkit.{wing}.**", "-> bertkit")
    project.write_text(content, encoding="utf-8")
    # the studies build on all wings: a distribution without commands hides theirs
    hidden = copy / "src" / "bertkit_studies-0.dist-info"
    hidden.mkdir()
    (hidden / "METADATA").write_text("Metadata-Version: 2.1\nName: bertkit-studies\nVersion: 0\n")
    return copy


def list_steps(copy: Path, wing: str, *, is_whole: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the names and command lines of what must pass in the copy."""
    python = sys.executable
    yield "floors", [str(Path(python).with_name("lint-imports"))]
    yield "imports", [python, "-c", f"WINGS = {WINGS}{IMPORT_ALL}"]
    pytest = [python, "-m", "pytest", "--quiet", "-p", "no:cacheprovider"]
    yield "collection", [*pytest, "--collect-only", "-qq", "tests"]
    if wing == "integrations" and not is_whole:
        return
    quick = [f"tests/{path}" for path in QUICK if Path(path).name != wing]
    quick += [f"--ignore=tests/{path}" for path in SLOW]
    flags = ["-m", "not exhaustive", "--numprocesses", "2", "--dist", "loadfile"]
    yield "tests", [*pytest, *flags, *(["tests"] if is_whole else quick)]


def run(words: list[str], copy: Path) -> int:
    """Run a command on the copy's own code, and print what it says as it goes."""
    packages = [copy / "src", copy / "studies", copy / "examples" / "demo"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, packages))}
    with subprocess.Popen(
        words,
        cwd=copy,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        for line in process.stdout or ():
            if not COLLECTED.fullmatch(line.rstrip()):
                print(line, end="", flush=True)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
