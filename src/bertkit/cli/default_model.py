"""The model of a command: named by --model or as the first argument, else the one bundled."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce
from bertkit.cli.texts import is_fed

if TYPE_CHECKING:
    from bertkit.checkpoints.bundled import Part

PATH = re.compile(r"\S*[/\\]\S*")


def take_model(
    words: Sequence[str],
    model: str | None,
    part: "Part",
    *,
    num_texts: int = 1,
    file: Path | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Return the model to use, and the arguments that are texts.

    The first argument is the model if it exists on this disk, or has a slash and no space, as
    folders and ids of the Hub have. A plain word is a text, since ids without a slash have a hyphen
    or a digit (bert-base-uncased). Announces the bundled model where that is taken.

    Args:
        words: the arguments.
        model: what --model says.
        part: which bundled weights are meant if no model is named.
        num_texts: how many texts the command needs at least.
        file: a file that has texts, too.

    Raises:
        SettingsError: the first argument may be a text or a model.
        MissingExtraError: no model is named, and none is bundled.
    """
    if model is not None:
        return model, tuple(words)
    from bertkit.checkpoints.hub import is_hub_id, is_on_disk

    if words:
        first, *others = words
        has_texts = len(others) >= num_texts or file is not None
        if is_on_disk(first) or (PATH.fullmatch(first) and (has_texts or is_fed())):
            return first, tuple(others)
        if is_hub_id(first) and not first.isalpha() and has_texts:
            raise SettingsError(
                f"{first!r} may be a text or the name of a model; say which model with --model, and"
                " put each text in quotes"
            )
    return take_bundled(part), tuple(words)


def take_model_and_files(inputs: Sequence[str], model: str | None) -> tuple[str, list[str]]:
    """Return the model to use, which may be the first of several arguments, and the files to read.

    Raises:
        SettingsError: there is no file.
        MissingExtraError: no model is named, and none is bundled.
    """
    if model is None and len(inputs) > 1:
        model, inputs = inputs[0], inputs[1:]
    if not inputs:
        raise SettingsError("give a file or folder of texts, or - for standard input")
    return model or take_bundled("vectors"), list(inputs)


def take_model_and_file(inputs: Sequence[str], model: str | None) -> tuple[str, str]:
    """Return the model to use and the one file to read, whose vectors are to be computed.

    Args:
        inputs: the arguments: the file, perhaps after the model.
        model: what --model says.

    Raises:
        SettingsError: there isn't one file.
        MissingExtraError: no model is named, and none is bundled.
    """
    if model is None and len(inputs) == 2:
        model, inputs = inputs[0], inputs[1:]
    if len(inputs) != 1:
        raise SettingsError("give one file of texts, or - for standard input")
    return model or take_bundled("vectors"), inputs[0]


def take_bundled(part: "Part") -> str:
    """Return the folder of the bundled model, and announce it; errors as in `find_bundled`."""
    from bertkit.checkpoints.bundled import find_bundled

    folder = find_bundled(part)
    announce("with the model that comes with bertkit; --model names another")
    return str(folder)
