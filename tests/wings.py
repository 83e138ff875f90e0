"""Tests that need a wing, and wings that are deleted."""

from pathlib import Path

import pytest

from bertkit.base.wings import has_wing

WINGS = ("decoders", "integrations", "interpret", "serving")
DELETED_WINGS = {wing for wing in WINGS if not has_wing(f"bertkit.{wing}")}
OF_STUDIES = ("next-word", "study")  # a package on top of all wings
needs_all_wings = pytest.mark.skipif(bool(DELETED_WINGS), reason="a wing is deleted")


def is_left_out(path: Path) -> bool:
    """Return whether a file or folder of tests needs a wing that is deleted."""
    return path.name in DELETED_WINGS


def needs(wing: str) -> pytest.MarkDecorator:
    """Skip a test where the wing that it needs is deleted."""
    return pytest.mark.skipif(wing in DELETED_WINGS, reason=f"bertkit.{wing} is deleted")


def has_command(words: str) -> bool:
    """Return whether the room of a command is there, such as `view a --svg b`, `finetune tag`."""
    from bertkit.cli.app import COMMANDS

    first, second = [*words.split(), ""][:2]
    address = COMMANDS.get(f"{first} {second}") or COMMANDS.get(first)
    if first in OF_STUDIES:
        return not DELETED_WINGS
    return address is None or has_wing(address)
