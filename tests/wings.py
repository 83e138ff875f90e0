"""Tests that need a wing, and wings that are deleted."""

from pathlib import Path

import pytest

from bertkit.base.wings import TEXT_TASKS, has_wing

WINGS = ("decoders", "interpret", "serving")
DELETED_WINGS = {wing for wing in WINGS if not has_wing(f"bertkit.{wing}")}
# Tests of the core that also test a wing, by their ends: left out with it until they are divided.
MIXED = {"decoders": ("tests/faults",)}
OF_STUDIES = ("next-word", "study")  # a package on top of all wings
needs_all_wings = pytest.mark.skipif(bool(DELETED_WINGS), reason="a wing is deleted")


def is_left_out(path: Path) -> bool:
    """Return whether a file or folder of tests needs a wing that is deleted."""
    ends = tuple(end for wing in DELETED_WINGS for end in MIXED.get(wing, ()))
    return path.name in DELETED_WINGS or path.as_posix().endswith(ends or "/")


def needs(wing: str) -> pytest.MarkDecorator:
    """Skip a test where the wing that it needs is deleted."""
    return pytest.mark.skipif(wing in DELETED_WINGS, reason=f"bertkit.{wing} is deleted")


def has_command(words: str) -> bool:
    """Return whether the room of a command is there, such as `view --svg`, `finetune translate`."""
    from bertkit.cli.main import COMMANDS

    name = words.partition(" --")[0]
    texts = TEXT_TASKS.get(name.removeprefix("finetune "))
    address = COMMANDS.get(name) or (texts.settings if texts is not None else None)
    if name.partition(" ")[0] in OF_STUDIES:
        return not DELETED_WINGS
    return address is None or has_wing(address)
