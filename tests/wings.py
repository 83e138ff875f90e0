"""Tests that need a wing, and wings that are deleted."""

import pytest

from bertkit.base.wings import TEXT_TASKS, has_wing

WINGS = ("decoders", "interpret", "serving")
DELETED_WINGS = {wing for wing in WINGS if not has_wing(f"bertkit.{wing}")}
needs_all_wings = pytest.mark.skipif(bool(DELETED_WINGS), reason="a wing is deleted")


def needs(wing: str) -> pytest.MarkDecorator:
    """Skip a test where the wing that it needs is deleted."""
    return pytest.mark.skipif(wing in DELETED_WINGS, reason=f"bertkit.{wing} is deleted")


def has_command(words: str) -> bool:
    """Return whether the room of a command is there, such as `view --svg`, `finetune translate`."""
    from bertkit.cli.main import COMMANDS

    name = words.partition(" --")[0]
    texts = TEXT_TASKS.get(name.removeprefix("finetune "))
    address = COMMANDS.get(name) or (texts.settings if texts is not None else None)
    return address is None or has_wing(address)
