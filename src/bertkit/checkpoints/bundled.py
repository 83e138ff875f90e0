"""The package of the model that comes with bertkit."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from bertkit.base.errors import MissingExtraError

PACKAGE = "bertkit_minilm"
INSTALL_COMMAND = "pip install ./models/minilm"
Part = Literal["words", "vectors"]
BUNDLED_NAMES = {
    "bertkit-minilm-vectors": "all-MiniLM-L6-v2 (comes with bertkit)",
    "bertkit-minilm-words": "all-MiniLM-L6-v2 with heads for words (comes with bertkit)",
}


def find_bundled(part: Part) -> Path:
    """Return the folder of a set of weights.

    Args:
        part: "words" has the heads for masked words and next sentence; "vectors" is the encoder
            for similarity, search and fine-tuning.

    Raises:
        MissingExtraError: the package isn't installed.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:  # a mere folder of the name has no origin
        raise MissingExtraError(
            "no model was named, and the one that comes with bertkit isn't installed; name one,"
            f" or install it with `{INSTALL_COMMAND}` in bertkit's repository"
        )
    return Path(spec.origin).parent / part


def describe_name(name: str) -> str:
    """Return the name for a reader of a model that has this name in records."""
    return BUNDLED_NAMES.get(name, name)
