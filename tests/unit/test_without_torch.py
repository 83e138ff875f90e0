"""What predicts loads where the import of torch is refused.

jaxtyping is refused as well: it takes longer to import than NumPy, and only shapes that tests check
need it.
"""

import re
import subprocess
import sys
from pathlib import Path

import bertkit

# What is for training or for torch's engine alone, in rooms that also predict.
NEED_TORCH = re.compile(
    r"checkpoints\.torch_tensors"
    r"|inference\.(engines\.torch_engine|gradients|torch_model)"
    r"|tasks\.(objectives\.(?!masking|settings)\w+|task_batch|\w+\.loss(es)?)"
)
PREDICTING = (
    "api.language",
    "api.models",
    "api.predictions",
    "api.preparation",
    "api.vectors",
    "base",
    "checkpoints",
    "cli",
    "data",
    "decoders.pipelines",
    "decoders.routes",
    "decoders.summaries",
    "inference",
    "integrations",
    "interpret.routes",
    "jobs",
    "models.open_model",
    "nn.packed_ids",
    "recipes.evaluate",
    "recipes.prepare",
    "reports",
    "retrieval",
    "serving",
    "tasks",
    "tokenization",
)
REFUSED = ("torch", "jaxtyping")
IMPORT_EACH = """
import sys
from importlib import import_module


class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ImportError(f"{name} is refused")


sys.meta_path.insert(0, Refusal())
for name in sys.argv[1:]:
    try:
        import_module(name)
    except ImportError as error:
        print(name, error)
"""


def list_modules(room: str) -> list[str]:
    package = Path(bertkit.__file__).parent
    home = package.joinpath(*room.split("."))
    files = sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]
    names = (".".join(path.relative_to(package).with_suffix("").parts) for path in files)
    return [name.removesuffix(".__init__") for name in names if not NEED_TORCH.fullmatch(name)]


def import_each(names: list[str]) -> list[str]:
    """What couldn't be imported, and why."""
    code = f"REFUSED = {REFUSED}\n{IMPORT_EACH}"
    result = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()


def test_what_predicts_imports_no_torch():
    assert (
        import_each([f"bertkit.{name}" for room in PREDICTING for name in list_modules(room)]) == []
    )


def test_an_import_is_refused():
    assert import_each([*REFUSED]) == [f"{name} {name} is refused" for name in REFUSED]
