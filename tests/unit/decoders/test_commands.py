"""What the commands print of a model that writes."""

import json
from pathlib import Path
from types import SimpleNamespace

from bertkit.cli.output import format_json
from bertkit.cli.predict import list_facts
from bertkit.decoders.commands.finetune import describe_pairs


def test_what_is_odd_about_pairs_is_told_to_people_and_programs():
    names = {"kind": "translate", "metrics": {"bleu": 0.0}, "signatures": {"bleu": "nrefs:1"}}
    counts = {"num_steps": 1200, "num_epochs": 2.5, "warnings": ("bleu is uninformative here",)}
    result = SimpleNamespace(output=Path("out"), saved=SimpleNamespace(**names, **counts))
    assert "bleu is uninformative here" in describe_pairs(result).splitlines()
    assert json.loads(format_json(list_facts(result, "signatures"))) == {
        "output": "out",
        "metrics": {"bleu": 0.0},
        "signatures": {"bleu": "nrefs:1"},
        "warnings": ["bleu is uninformative here"],
    }
