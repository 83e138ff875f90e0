"""`bertkit study <name>`: reproduce a published experiment."""

import json as json_module
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.base.errors import BertkitError
from bertkit.base.extras import require_torch
from bertkit.base.signals import stop_at_once
from bertkit.cli.streams import ReaderGoneError
from bertkit.cli.texts import legible
from bertkit_studies.table import STUDIES, StudyEntry

if TYPE_CHECKING:
    from bertkit_studies.outcome import Outcome

DOCSTRING = """{summary}

    Runs each arm with several seeds, all with the same budget, and writes a table, curves, and a
    comparison with published results: report.html, table.md and results.jsonl. The same command
    resumes with the missing runs; seeds can be added later.

    **Examples**

        bertkit study {name} {inputs} --output study/

        bertkit study {name} {inputs} --output five-minutes/ --minutes 5 --seeds 5

        bertkit study {name} {inputs} --output one-arm/ --only {arm}

    Args:
        output: Folder for the runs and the report.
        json: Print the outcome as one JSON object.
    """


class FailedRunsError(BertkitError, RuntimeError):
    """Some of several runs failed; the others finished, and each failure's reason is recorded."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., None]:
        """Build the command of a study when it is asked for (PEP 562)."""
        if name not in STUDIES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return build_command(name, STUDIES[name])


def build_command(name: str, entry: StudyEntry) -> Callable[..., None]:
    """`bertkit study <name>`: its flags follow from the study's settings."""
    kind: Any = entry.settings

    def run_study(
        *,
        settings: kind,
        output: Path,
        json: bool = False,
    ) -> None:
        require_torch(f"`bertkit study {name}`")
        with stop_at_once(lambda: "stopped while loading; run the same command again"):
            from bertkit_studies.run import count_seeds
            from bertkit_studies.run import run_study as run

            chosen = entry.load()(settings)
        known = settings.model_copy(update={"seeds": count_seeds(settings.seeds, output)})
        command = describe_command(name, known, output)
        outcome = run(chosen, output, command)
        with suppress(ReaderGoneError):  # failed runs are an error in any case
            show(outcome, output, json=json)
        if outcome.failures:
            raise FailedRunsError(
                f"{len(outcome.failures)} of {outcome.num_cells} runs failed for the reasons"
                f" above; this command retries them: {command}"
            )

    if not any(field.is_required() for field in kind.model_fields.values()):
        defaults = run_study.__kwdefaults__ or {}
        run_study.__kwdefaults__ = {**defaults, "settings": kind()}  # cyclopts asks for one then
    run_study.__doc__ = DOCSTRING.format(
        name=name, summary=entry.summary, inputs=entry.inputs, arm=entry.arm
    )
    return run_study


def show(outcome: "Outcome", output: Path, *, json: bool) -> None:
    """Print the outcome as JSON or text."""
    if json:
        print(json_module.dumps({"output": str(output), **outcome.to_json()}))
        return
    from bertkit_studies.page import describe_outcome

    print(legible("\n".join(describe_outcome(outcome))))
    print(legible(f"Report: {(output / 'report.html').resolve()}"))


def describe_command(name: str, settings: Any, output: Path) -> str:
    """Return the command line that runs all arms with the same settings."""
    words = ["bertkit", "study", name]
    for key, field in type(settings).model_fields.items():
        value, flag = getattr(settings, key), key.replace("_", "-")
        if key == "only" or value == field.default:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
            continue
        for each in value if isinstance(value, tuple) else (value,):
            words += [f"--{flag}", str(each)]
    return shlex.join([*words, "--output", str(output)])
