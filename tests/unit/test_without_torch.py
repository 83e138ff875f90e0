"""What predicts loads where the import of torch is refused.

jaxtyping is refused as well: it takes longer to import than NumPy, and only shapes that tests check
need it.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bertkit

# What trains, and nothing else, in rooms that also predict.
NEED_TORCH = re.compile(r"tasks\.(objectives\.(?!masking|settings)\w+|task_batch|\w+\.loss(es)?)")
PREDICTING = ("inference.numbers", "nn.packed_ids", "retrieval.stored_vectors")
REFUSE = """
import sys
from importlib import import_module


class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "jaxtyping"):
            raise ImportError(f"{name} is refused")


sys.meta_path.insert(0, Refusal())
for name in sys.argv[1:]:
    import_module(name)
"""


def list_modules(room: str) -> list[str]:
    package = Path(bertkit.__file__).parent
    home = package.joinpath(*room.split("."))
    files = sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]
    names = [".".join(path.relative_to(package).with_suffix("").parts) for path in files]
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("room", PREDICTING)
def test_what_predicts_imports_no_torch(room):
    names = [f"bertkit.{name}" for name in list_modules(room) if not NEED_TORCH.fullmatch(name)]
    result = subprocess.run(
        [sys.executable, "-c", REFUSE, *names], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", ["torch", "jaxtyping"])
def test_an_import_is_refused(name):
    result = subprocess.run(
        [sys.executable, "-c", REFUSE, name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{name} is refused" in result.stderr
