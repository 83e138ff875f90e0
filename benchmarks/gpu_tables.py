"""The results of `make gpu` as Markdown, ready for docs/performance.md and docs/results.md."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_parts import Part
from turns import begin_table


def write_tables(path: Path, parts: Sequence[Part], records: Mapping[str, Any]) -> None:
    path.write_text("\n".join(list_lines(parts, records)) + "\n", encoding="utf-8")


def list_lines(parts: Sequence[Part], records: Mapping[str, Any]) -> Iterator[str]:
    """How far each part is, then the output of each."""
    yield from ("# On a GPU", "", begin_table("part", "state", "seconds", "tries", "on"))
    for part in parts:
        record = records.get(part.name, {"state": "not run"})
        cells = [part.name, record.get("reason") or record["state"]]
        cells += [f"{record['seconds']:.0f}" if "seconds" in record else "–"]
        cells += [str(record.get("tries", 0)), describe_machine(record.get("machine"))]
        yield f"| {' | '.join(cells)} |"
    for part in parts:
        record = records.get(part.name, {})
        if record.get("printed", "").strip() or record.get("errors"):
            yield from show_part(part, record)


def describe_machine(machine: Mapping[str, str] | None) -> str:
    if machine is None:
        return "–"
    return f"{machine['gpu']}, torch {machine['torch']}, code {machine['code']}"


def show_part(part: Part, record: Mapping[str, Any]) -> Iterator[str]:
    """The output of a part under its title: a benchmark's as it is, as that is a table."""
    yield from ("", f"## {part.title}", "", f"`{record['command']}`", "")
    if record.get("model") and "{data}" in " ".join(part.words):
        yield from (f"all-MiniLM-L6-v2 wasn't there: a {record['model']} in its place.", "")
    is_table = part.words[0].startswith("benchmarks/bench_")
    fence = [] if is_table else ["```"]
    yield from (*fence, record["printed"].rstrip("\n"), *fence)
    if record["state"] != "done":
        yield from ("", f"{record['state']}:", "", "```", record["errors"].rstrip("\n"), "```")
