"""What the pages on the code name exists: files, names, constants, commands, flags, targets."""

import ast
import re
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from tests.unit.test_house import PUBLIC_NAMES
from tests.wings import needs_all_wings

from bertkit.base.wings import TEXT_TASKS
from bertkit.cli.app import COMMANDS
from bertkit.tasks.table import TASKS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/architecture.md", "docs/security.md", "CONTRIBUTING.md"]
FOLDERS = ["src", "docs", "tests", "benchmarks", "examples", "studies", "models", "tools", ".ci"]
CODE = ["src", "studies", "examples", "benchmarks", "tests", "tools"]
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.<>-]*(?:/[\w.<>-]*)+|[\w<>-]+\.(?:py|js|css|md|toml|json)")
NAME = re.compile(r"[A-Za-z_][\w.]*(?:\(.*\))?")
CONSTANT = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
# "`A` and `B` in `file.py`"
PLACED = re.compile(r"((?:`\w+`(?:, | and | or )?)+) (?:in|of) `([\w/]+\.py)`")
LIMIT = re.compile(r"^\| (`.*?) \| .* \| (`.*) \|$", re.MULTILINE)  # a row of the table of limits
# names of other programs, of machines, and of files that the user has
FOREIGN = {
    "FORWARDED_ALLOW_IPS",  # uvicorn's
    "fsspec.open_local",
    "simplecache",
    "/v1/models/NAME/info",
    "num_",
    "lm_head.",
    "n_heads",
    "hidden_dim",
    "pre_classifier",
    "distilbert.transformer.layer.{layer}.attention.q_lin",  # of other models
    "models--…/snapshots/…",  # the Hub's cache
    "../shared/data",
    "shared/data",
    "benchmarks/results/gpu/",
    "results.json",
    "tables.md",  # what `make gpu` writes
    ".cache/fuzz",
}

FLAGS_OF_OTHERS = {
    "--max-restarts",  # of torchrun
    "--long=28",  # of zstd
    "--stop-timeout",  # of docker
    "--preload",  # of gunicorn
}


@cache
def list_files() -> list[str]:
    folders = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    found = [path for path in [*ROOT.iterdir(), *folders] if "__pycache__" not in path.parts]
    return [f"/{path.relative_to(ROOT)}" + "/" * path.is_dir() for path in found]


@cache
def read_code() -> str:
    files = [path for name in CODE for path in (ROOT / name).rglob("*.py")]
    scripts = (ROOT / "src").rglob("*.js")
    own = Path(__file__).resolve()
    texts = [path.read_text("utf-8") for path in [*files, *scripts] if path != own]
    return "\n".join([*texts, (ROOT / "pyproject.toml").read_text("utf-8")])


@cache
def list_words() -> set[str]:
    return set(re.findall(r"\w+", read_code()))


def is_path(span: str) -> bool:
    pattern = re.sub(r"<\w+>", "[^/]+", re.escape(span.rstrip("/")).replace(r"\<", "<"))
    pattern = pattern.replace(r"\>", ">")
    ending = re.compile(rf"/{pattern.lstrip('/')}/?$")
    return any(ending.search(name) for name in list_files()) or span.strip("/") in read_code()


def is_constant(name: str, code: str) -> bool:
    return re.search(rf"^{name}\b[^=\n]*=|\"{name}\"|\({name}\)", code, re.MULTILINE) is not None


def is_command(words: list[str]) -> bool:
    of_packages = {"demo", "study", "next-word", "count", "<task>"}  # `count` is a test's own
    groups = {name.partition(" ")[0] for name in COMMANDS} | {"finetune"}
    return words[0].startswith("--") or words[0] in {*groups, *TASKS, *TEXT_TASKS, *of_packages}


def find_problem(span: str) -> str | None:
    """What of this span doesn't exist."""
    if span in FOREIGN:
        return None
    words = span.split()
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return None if words[1] in targets else "no target of the Makefile"
    if words[0] == "bertkit" and len(words) > 1:
        return None if is_command(words[1:]) else "no command"
    if span.startswith("--"):
        flags = (ROOT / "docs/reference/commands.md").read_text("utf-8")
        of_tests = (ROOT / "conftest.py").read_text("utf-8")
        is_known = re.search(rf"`{words[0]}\b", flags) or f'"{words[0]}"' in of_tests
        return None if is_known else "no flag"
    if PATH.fullmatch(span):
        return None if is_path(span) else "no file"
    if CONSTANT.fullmatch(span):
        code = read_code() + (ROOT / "Makefile").read_text("utf-8")
        return None if is_constant(span, code) else "no constant, no variable"
    if NAME.fullmatch(span):
        missing = set(re.findall(r"\w+", span.partition("(")[0])) - list_words()
        return f"no name: {', '.join(sorted(missing))}" if missing else None
    return None


def read_page(page: str) -> str:
    return FENCED.sub("", (ROOT / page).read_text("utf-8"))


def list_lessons() -> list[Path]:
    """What shows people how to use bertkit; `explained/` and `PAGES` are on its code."""
    guides = [*(ROOT / "docs" / "guide").glob("*.md"), *(ROOT / "docs").glob("*.md")]
    pages = [path for path in guides if str(path.relative_to(ROOT)) not in PAGES]
    return [ROOT / "README.md", *pages, *(ROOT / "examples").glob("*.py")]


def find_inner_names(code: str) -> set[str]:
    """What code takes from bertkit that isn't public."""
    modules = re.findall(r"^\s*(?:from|import) (bertkit\.[\w.]+)", code, re.MULTILINE)
    imported = re.findall(r"^\s*from bertkit import ([^(\n]+|\([^)]*\))", code, re.MULTILINE)
    names = {*re.findall(r"\w+", " ".join(imported)), *re.findall(r"\bbertkit\.(\w+)\(", code)}
    inner = {one for one in modules if not one.startswith("bertkit.integrations.")}
    return inner | (names - {*PUBLIC_NAMES})


@pytest.mark.parametrize("path", list_lessons(), ids=lambda one: one.name)
def test_a_lesson_uses_public_names_alone(path):
    text = path.read_text("utf-8")
    code = text if path.suffix == ".py" else "\n".join(FENCED.findall(text))
    assert find_inner_names(code) == set()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import bertkit\nfrom bertkit import Embedder, embed\nbertkit.embed([])", set()),
        ("from bertkit.jobs.convert import convert", {"bertkit.jobs.convert"}),
        ("import bertkit.interpret", {"bertkit.interpret"}),
        ("from bertkit import Tokenizer, base", {"base"}),
        ("from bertkit import (\n    Tokenizer,\n    nn,\n)", {"nn"}),
        ("bertkit.convert(folder)", {"convert"}),
    ],
)
def test_a_name_that_is_not_public_is_found(code, names):
    assert find_inner_names(code) == names


@needs_all_wings
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_exists(page):
    text = read_page(page)
    found = {span: find_problem(span) for span in SPAN.findall(text)}
    assert {span: problem for span, problem in found.items() if problem is not None} == {}


def list_placed() -> list[tuple[str, tuple[str, ...]]]:
    """The names for which a page gives a file, and the files that it gives."""
    placed = [
        (name, (file,))
        for page in PAGES
        for names, file in PLACED.findall(read_page(page))
        for name in SPAN.findall(names)
    ]
    limits = [
        (name, tuple(SPAN.findall(files)))
        for names, files in LIMIT.findall(read_page("docs/security.md"))
        for name in SPAN.findall(names)
    ]
    assert len(placed) > 10
    assert len(limits) > 10
    return placed + limits


@needs_all_wings
@pytest.mark.parametrize(("name", "files"), list_placed())
def test_a_name_is_in_its_file(name, files):
    paths = [
        path
        for file in files
        for path in list_files()
        if path.endswith((f"bertkit/{file}", f"/{file}"))
    ]
    sources = [(ROOT / path.lstrip("/")).read_text("utf-8") for path in paths]
    assert any(re.search(rf"\b{name}\b", source) for source in sources)


@pytest.mark.parametrize(
    "span",
    [
        "make tests",
        "bertkit clasify",
        "--no-such-flag",
        "data/readers/__init__.py",
        "nn/<name>_of_nothing.py",
        "forgotten.py",
        "FORGOTTEN_LIMIT_BYTES",
        "Pipeline.no_such_method",
        "no_such_function(text)",
    ],
)
def test_what_does_not_exist_is_found(span):
    assert find_problem(span) is not None


def test_modules_that_the_docstrings_of_packages_name_exist():
    missing = []
    for path in (ROOT / "src").rglob("__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        siblings = {path.parent.name, *(other.stem for other in path.parent.iterdir())}
        for span in SPAN.findall(docstring):
            is_module = re.fullmatch(r"[a-z_]+", span) is None or span in siblings
            is_file = PATH.fullmatch(span) is None or is_path(span)
            if not (is_module and is_file):
                missing.append(f"{path.relative_to(ROOT)}: {span}")
    assert missing == []


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/guide").rglob("*.md")), ids=lambda one: one.stem
)
def test_a_flag_that_a_guide_names_exists(page):
    text = FENCED.sub("", page.read_text("utf-8"))
    names = {span.split()[0] for span in SPAN.findall(text) if span.startswith("--")}
    forms = {name: (name, name.replace("--no-", "--")) for name in names - FLAGS_OF_OTHERS}
    assert {name for name, both in forms.items() if all(map(find_problem, both))} == set()


def test_each_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[^\w-]", one)[0] for one in chain(*lists)}
    table = (ROOT / "docs/architecture.md").read_text("utf-8").partition("## Dependencies")[2]
    reasons = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))
    assert {"gcsfs", "s3fs"} <= names  # which come with extras of fsspec's row
    assert names - {"gcsfs", "s3fs"} - set(re.split(r"[^\w-]+", reasons)) == set()
