"""Example outputs of a pre-training run's newest checkpoint: filled blanks or continuations."""

from collections.abc import Sequence

from bertkit.reports.report import Section
from bertkit.run_reports.blanks import fill_blanks
from bertkit.run_reports.continuations import continue_texts
from bertkit.run_reports.facts import RunFacts


def show_examples(facts: RunFacts, texts: Sequence[str]) -> list[Section]:
    """Build the examples that fit the run's objective.

    Args:
        facts: the facts of a pre-training run.
        texts: the user's texts; if empty, held-out sentences or sentences of general English.
    """
    show = continue_texts if facts.objective == "causal" else fill_blanks
    return show(facts, texts)
