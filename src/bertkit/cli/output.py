"""How commands print results: as a description, or as a line of JSON."""

import json as json_module
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from bertkit.base.addresses import show_address
from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.json_files import with_nulls
from bertkit.base.parts import PartsSettings
from bertkit.data.file_parts import FilesResult

Result = TypeVar("Result")


def check_share(parts: PartsSettings, *, overwrite: bool) -> None:
    """Refuse flags that a process can't have beside others that share the output."""
    if overwrite:
        raise SettingsError("--overwrite would remove what other shards wrote; leave out --shard")
    if parts.run_on != "local":
        raise SettingsError(f"--run-on {parts.run_on} divides the parts itself; leave out --shard")


def format_json(facts: object) -> str:
    """Format facts, or the fields of a result, as a line of JSON; what isn't finite is null."""

    def convert(one: Any) -> Any:
        if isinstance(one, BaseModel):
            return one.model_dump(mode="json")
        return show_address(one) if isinstance(one, Path) else with_nulls(asdict(one))

    text = json_module.dumps(
        with_nulls(facts), ensure_ascii=False, allow_nan=False, default=convert
    )
    return f"{text}\n"


def print_result(
    result: Result, describe: Callable[[Result], str], *, json: bool, facts: object = None
) -> None:
    """Print a result as its description, or as JSON: its facts, by default all its fields."""
    if json:
        sys.stdout.write(format_json(result if facts is None else facts))
    else:
        sys.stdout.write(f"{describe(result)}\n")


def describe_missing(output: Path, num_parts: int, num_missing: int) -> str:
    """Describe how many parts of a shared output other processes still have to make."""
    return (
        f"{show_address(output)}: {num_missing:,} of {pluralize(num_parts, 'part')} missing; run"
        " the other shards, or the same command without --shard, which does the rest"
    )


def describe_files(result: FilesResult) -> str:
    """Describe outputs of many files."""
    if result.num_missing:
        missing = describe_missing(result.output, result.num_files, result.num_missing)
        return f"{result.num_made:,} made now; {missing}"
    num_before = result.num_files - result.num_made
    done = f"{show_address(result.output)}: {pluralize(result.num_files, 'file')}"
    done += f", {num_before:,} of them done before" if num_before else ""
    counts = ", ".join(f"{number:,} {name}" for name, number in result.counts.items())
    return "; ".join(filter(None, (done, counts.replace("_", " "))))
