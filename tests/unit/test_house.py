"""The house is in order: tables and files agree, public names are stable, torch loads late."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path
from typing import get_args

import pytest
from tests.wings import DELETED_WINGS

import bertkit
import bertkit_demo
import bertkit_studies
from bertkit.base.errors import MissingExtraError
from bertkit.base.wings import list_installed, load_object
from bertkit.checkpoints.formats import FORMATS
from bertkit.cli.app import COMMANDS, build_app, list_commands
from bertkit.cli.main import main
from bertkit.data.tables.formats import FORMATS as FILE_FORMATS
from bertkit.recipes.pretrain.objective_report import find_report
from bertkit.tasks.objectives.settings import ObjectiveName
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tasks.table import TASKS

PUBLIC_NAMES = [
    "Answerer",
    "AttentionView",
    "BertConfig",
    "BertForMaskedLM",
    "BertForMultipleChoice",
    "BertForNextSentencePrediction",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertLMHeadModel",
    "BertModel",
    "BertkitError",
    "CentralSummarizer",
    "Chooser",
    "Classifier",
    "Embedder",
    "EmbedderSettings",
    "EncoderDecoderConfig",
    "EncoderDecoderModel",
    "FeatureExtractor",
    "FillMask",
    "Generator",
    "GeneratorSettings",
    "Index",
    "IndexSettings",
    "InspectedModel",
    "NextSentence",
    "Predictor",
    "Regressor",
    "Reranker",
    "Tagger",
    "TextScorer",
    "Tokenizer",
    "Translator",
    "VectorIndex",
    "ViewSettings",
    "WordVectors",
    "__version__",
    "ablate",
    "classify",
    "compare_contexts",
    "embed",
    "evaluate",
    "export",
    "fill_mask",
    "find_outcome",
    "finetune",
    "generate",
    "inspect",
    "nearest_by_layer",
    "next_sentence",
    "predict",
    "prepare",
    "pretrain",
    "project",
    "report",
    "rerank",
    "review",
    "score",
    "search",
    "similarity",
    "summarize",
    "train_tokenizer",
    "translate",
    "view",
]
INSTALLED_NAMES = sorted({*PUBLIC_NAMES} & {*bertkit.__all__})  # all, unless a wing is deleted
MAX_ROOMS = 19
PACKAGES = (bertkit, bertkit_demo, bertkit_studies)
IN_A_MODULE = ("BertkitError", "__version__")  # the page has the whole module of errors
HEAVY = ["huggingface_hub", "pyarrow", "torch", "transformers"]
WATCH = """
import contextlib, io, json, sys
loaded = {}
import bertkit
loaded["import bertkit"] = [name for name in HEAVY if name in sys.modules]
from bertkit.cli.app import build_app, list_commands
from bertkit.cli.main import main
for words in [["--help"], *([*name.split(), "--help"] for name in list_commands(build_app()))]:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words) == 0, words
    loaded[" ".join(words)] = [name for name in HEAVY if name in sys.modules]
print(json.dumps(loaded))
"""


def list_modules(package: str) -> set[str]:
    folder = Path(importlib.import_module(package).__file__).parent
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def list_sources():
    return [path for one in PACKAGES for path in sorted(Path(one.__file__).parent.rglob("*.py"))]


def test_each_command_is_a_function_of_its_name():
    functions = {name: target.partition(":")[2] for name, target in COMMANDS.items()}
    assert functions == {name: re.sub("[- ]", "_", name) for name in COMMANDS}
    assert [name for name, home in list_installed(COMMANDS).items() if not load_object(home)] == []
    homes = {target.partition(":")[0] for target in COMMANDS.values()}
    files = {home.rpartition(".")[2] for home in homes if home.startswith("bertkit.cli.")}
    others = {"app", "help", "main", "next_step", "output", "predict", "streams", "texts", "usage"}
    assert list_modules("bertkit.cli") - others == files


def test_nothing_goes_past_the_ways_to_the_standard_streams():
    """What is written elsewhere could end the work where a stream is broken."""
    past = [
        path for path in list_sources() if re.search(r"sys\.stderr|Console\(", path.read_text())
    ]
    package = Path(bertkit.__file__).parent
    ways = ("__main__.py", "base/progress.py", "cli/streams.py")
    assert past == [package / way for way in ways]


def test_each_task_is_a_folder_with_two_commands():
    folder = Path(importlib.import_module("bertkit.tasks").__file__).parent
    rooms = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    assert {name.replace("-", "_") for name in TASKS} == rooms - {"metrics", "objectives"}
    guide = Path(__file__).parents[2] / "docs" / "guide"
    pages = {"embed": "train-embeddings"}  # beside that of the command without training
    assert not [name for name in TASKS if not (guide / f"{pages.get(name, name)}.md").is_file()]
    for name, entry in TASKS.items():
        kind = entry.load()
        assert kind.name == name
        assert kind.__module__ == f"bertkit.tasks.{name.replace('-', '_')}.task"
    commands = list_commands(build_app())
    of_packages = {"demo"}
    if not DELETED_WINGS:  # the studies build on all
        from bertkit_studies.command import VECTORS
        from bertkit_studies.table import STUDIES

        of_packages |= {"next-word", *(f"study {name}" for name in (*STUDIES, *VECTORS))}
    of_tasks = {*TASKS, *(f"finetune {name}" for name in TASKS)}
    assert commands.keys() == {*list_installed(COMMANDS), *of_tasks, *of_packages}


def test_each_objective_has_its_setting_and_its_curves():
    assert set(OBJECTIVES) == set(get_args(ObjectiveName))
    assert all(find_report(name).curves for name in OBJECTIVES)


def test_each_file_format_is_a_file_of_its_name():
    modules = {one.read_rows.__module__.rpartition(".")[2] for one in FILE_FORMATS.values()}
    names = {"text": "lines", "json": "squad", "csv": "separated", "tsv": "separated"}
    assert modules == {names.get(name, name) for name in FILE_FORMATS}
    others = {"glue", "hub"}  # a folder, and an address
    assert list_modules("bertkit.data.tables.formats") == modules | others


def test_each_checkpoint_format_is_a_file_or_folder_of_its_name():
    modules = {name: known.open.__module__ for name, known in FORMATS.items()}
    places = {name: module.split(".")[2] for name, module in modules.items()}
    assert places == {name: name for name in FORMATS}


def test_public_names_are_these():
    assert sorted(bertkit.__all__) == INSTALLED_NAMES == dir(bertkit)
    assert DELETED_WINGS or INSTALLED_NAMES == PUBLIC_NAMES


@pytest.mark.skipif(not DELETED_WINGS, reason="each wing is there")
def test_what_a_deleted_wing_had_is_refused_by_its_name(capsys):
    names = {*PUBLIC_NAMES} - {*INSTALLED_NAMES}
    for name in names:
        with pytest.raises(MissingExtraError, match=r"needs bertkit\.\w+, which isn't installed"):
            getattr(bertkit, name)
    for name in COMMANDS.keys() - list_installed(COMMANDS).keys():
        assert main(name.split()) == MissingExtraError.exit_code
        assert "which isn't installed" in capsys.readouterr().err


@pytest.mark.parametrize("name", INSTALLED_NAMES)
def test_a_public_name_can_be_had(name):
    value = getattr(bertkit, name)
    assert isinstance(value, str) or value.__name__ == name


def test_each_public_name_has_its_place_in_the_reference():
    page = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
    kinds = r"^\.\. auto(?:class|function):: bertkit\.(\w+)$"
    listed = re.findall(kinds, page.read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == [name for name in PUBLIC_NAMES if name not in IN_A_MODULE]


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"bertkit.*'BertTokenizer'"):
        _ = bertkit.BertTokenizer


def test_import_and_help_load_nothing_heavy():
    result = subprocess.run(
        [sys.executable, "-c", f"HEAVY = {HEAVY!r}\n{WATCH}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    loaded = json.loads(result.stdout)
    assert len(loaded) == 2 + len(list_commands(build_app()))
    assert {moment: names for moment, names in loaded.items() if names} == {}


def test_the_list_of_commands_loads_only_what_shows_it():
    code = (
        "import sys; from bertkit.cli.main import main; main(['--help']);"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    needless = {"fsspec", "google_crc32c", "numpy", "openvino", "pyarrow", "pydantic", "tokenizers"}
    assert {*result.stderr.split()} & {*needless, "torch", "zstandard"} == set()


def test_no_clock_is_read_that_can_be_set_back():
    """Budgets, rates and intervals go by a monotonic clock, and no file is named after the hour."""
    clock = re.compile(
        r"\btime\.(time|time_ns|localtime|gmtime|strftime)\b|\bdatetime\b(?! import timedelta\n)"
    )
    assert [path for path in list_sources() if clock.search(path.read_text("utf-8"))] == []


def test_no_test_sets_the_clock_of_the_whole_process():
    """An event loop in another thread would sleep for what it believes to be hours."""
    tests = Path(__file__).parents[1].rglob("*.py")
    clock = re.compile(r"setattr\(\s*(\w+\.)?time, ")
    assert [path for path in tests if clock.search(path.read_text(encoding="utf-8"))] == []


def test_a_share_is_written_by_one_function():
    """Otherwise 77.5 %, 0.775 and 77.5% stand side by side."""
    share = re.compile(r"%\}|[0-9][fg]\} ?%|\.[0-9]%")
    writers = {"text.py", "svg.py"}  # the function, and the short numbers at an axis
    sources = [path for path in list_sources() if path.name not in writers]
    assert [path for path in sources if share.search(path.read_text("utf-8"))] == []


def test_strings_stand_alone_only_as_docstrings():
    """A wrapped string without parentheses loses its second line without an error."""
    lost = []
    for path in list_sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            body = getattr(node, "body", None)
            strings = [s for s in body if is_string(s)] if isinstance(body, list) else []
            is_documented = isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            lost += [
                f"{path.name}:{s.lineno}" for s in strings if not is_documented or s is not body[0]
            ]
    assert lost == []


def is_string(statement):
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str)
    )


def test_a_class_name_stands_once_in_the_house():
    names = Counter(
        name
        for path in Path(bertkit.__file__).parent.rglob("*.py")
        for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE)
    )
    assert {name for name, count in names.items() if count > 1} == set()


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_the_tree_on_the_page_has_all_rooms(page):
    text = (Path(__file__).parents[2] / page).read_text("utf-8")
    tree = text.partition("src/bertkit/\n")[2].partition("```")[0]
    rooms = {path.parent.name for path in Path(bertkit.__file__).parent.glob("*/__init__.py")}
    assert set(re.findall(r"^  (\w+)/", tree, re.MULTILINE)) == rooms | DELETED_WINGS
    assert len(rooms) <= MAX_ROOMS


def list_imports(tree):
    """Yield what is imported when a module is: not what a function imports, nor a type checker."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.Lambda) and not (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            yield from list_imports(node)


def test_no_module_imports_itself_by_way_of_others():
    """A package's own file is imported too: such a circle shows only to whoever enters it there."""
    folder = Path(bertkit.__file__).parent
    trees = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): ast.parse(path.read_text("utf-8"))
        for path in folder.rglob("*.py")
    }
    graph = {}
    for module, tree in trees.items():
        names = {name for name in list_imports(tree) if name in trees}
        packages = {".".join(name.split(".")[:depth]) for name in names for depth in (2, 3)}
        own = {".".join(module.split(".")[:depth]) for depth in range(1, module.count(".") + 1)}
        graph[module] = (names | packages & trees.keys()) - own - {module}
    TopologicalSorter(graph).prepare()  # raises CycleError, with the circle
