"""The held-out rows that gained and lost most by training, as sections of the report."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bertkit.recipes.finetune.verdict import PLURALS, Verdict
from bertkit.reports.report import Callout, Paragraph, Section, Table
from bertkit.reports.text import Cell, MetricCell
from bertkit.tasks.evaluation import Numbers
from bertkit.tasks.ranking import ComparedScoring, RowValues
from bertkit.tasks.sections import show_name

MAX_CHANGES = 10  # of each direction


@dataclass(frozen=True)
class HeldOutChanges:
    """The held-out rows before and after training."""

    verdict: Verdict
    scoring: ComparedScoring[Any, Any]  # of the model that was saved
    start: RowValues  # before training

    def draw(self) -> list[Section]:
        """Return the verdict with its advice, and the rows that gained and that lost most."""
        verdict = self.verdict
        shown: Section = Paragraph(verdict.describe_method(), title=verdict.word.capitalize())
        advice: list[Section] = [Callout(line) for line in verdict.list_advice()]
        gains, plural = self.scoring.row_values.find_gains(self.start), PLURALS[verdict.unit]
        return [
            shown,
            *advice,
            *self._tabulate(f"The {plural} that gained most", gains),
            *self._tabulate(f"The {plural} that lost most", -gains),
        ]

    def _tabulate(self, title: str, sizes: Numbers) -> list[Section]:
        """Tabulate the rows of the largest positive sizes, if there are any."""
        rows = [row for row in np.argsort(-sizes, kind="stable").tolist() if sizes[row] > 0]
        verdict, values = self.verdict, self.scoring.row_values.values
        is_query = verdict.unit == "query"
        name = show_name(verdict.metric) if is_query else "Similarity"
        others = ["Relevant passage", "Ranked first"] if is_query else ["True similarity"]
        columns = [verdict.unit.capitalize(), f"{name} before", "After", *others]
        cells: list[list[Cell]] = []
        for row in rows[:MAX_CHANGES]:
            before_after: list[Cell] = [
                MetricCell(float(each[row]), is_share=is_query)
                for each in (self.start.values, values)
            ]
            told = self.scoring.contrast(row)[: len(others)]
            cells.append([self.scoring.show_example(row), *before_after, *told])
        note = f"There are {len(rows) - MAX_CHANGES:,} more." if len(rows) > MAX_CHANGES else ""
        return [Table(columns, cells, title=title, note=note)] if cells else []
