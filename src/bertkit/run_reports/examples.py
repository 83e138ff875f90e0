"""What a pre-training run's newest checkpoint says: words in blanks, or how texts go on."""

from collections.abc import Sequence

from bertkit.reports.report import Section
from bertkit.run_reports.blanks import fill_blanks
from bertkit.run_reports.continuations import continue_texts
from bertkit.run_reports.facts import RunFacts


def show_examples(facts: RunFacts, texts: Sequence[str]) -> list[Section]:
    """What fits the run's objective.

    Args:
        facts: of a pre-training run.
        texts: the user's own; without any, held-out sentences, or some of general English.
    """
    show = continue_texts if facts.objective == "causal" else fill_blanks
    return show(facts, texts)
