"""Runs the cases of hostile files in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def run_modules(folder: Path, modules: str, *bug: str) -> list[dict[str, Any]]:
    """What came of each case, in a process that is begun again where one case ended it."""
    outcomes: list[dict[str, Any]] = []
    while True:
        words = [sys.executable, "-m", "tests.hostile.child", folder, modules, len(outcomes), *bug]
        child = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True)
        outcomes += [json.loads(line) for line in child.stdout.splitlines()]
        if child.returncode >= 0:
            assert child.returncode == 0, child.stderr
            return outcomes
        problem = f"ended the process with signal {-child.returncode}"
        outcomes.append(
            {"name": f"case {len(outcomes)} of {modules}", "defect": "", "problem": problem}
            | {"seconds": 0.0, "extra_bytes": 0}
        )
