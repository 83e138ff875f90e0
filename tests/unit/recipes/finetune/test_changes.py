"""The part of the report that says what became better, and what worse."""

from types import SimpleNamespace

import numpy as np

from bertkit.recipes.finetune.changes import MAX_CHANGES, HeldOutChanges
from bertkit.recipes.finetune.verdict import judge
from bertkit.reports.report import Report, Table, render_report
from bertkit.tasks.ranking import NDCG, RankedQuery, RankingScoring, RowValues, Similarity
from bertkit.tasks.ranking import SimilarityScoring as Pairs


def build_changes(gains: list[int]) -> HeldOutChanges:
    """Queries whose passage is first if they gained or stayed (1, 0), and second if not (-1)."""
    examples = [SimpleNamespace(shown=f"query {n}", group=None) for n in range(len(gains))]
    found = [
        RankedQuery.of(f"query {n}", ["no", f"yes {n}"], [0.5, 1.0 if gain >= 0 else 0.0], [0, 1])
        for n, gain in enumerate(gains)
    ]
    scoring = RankingScoring(examples, found)
    after = scoring.row_values
    start = RowValues(after.values - 0.3 * np.array(gains))
    verdict = judge(NDCG, start, [(0, start), (1, after)], np.arange(len(gains)))
    return HeldOutChanges(verdict, scoring, start)


def test_the_rows_that_gained_and_lost_most_are_shown():
    sections = build_changes([1] * 12 + [0] * 2 + [-1] * 3).draw()
    gained, lost = (each for each in sections if isinstance(each, Table))
    assert gained.title == "The queries that gained most"
    assert (len(gained.rows), gained.note) == (MAX_CHANGES, "There are 2 more.")
    assert [str(cell) for cell in gained.rows[0]] == [
        *("query 0", "70.0 %", "100.0 %", "rank 1: yes 0", "yes 0")
    ]
    assert lost.title == "The queries that lost most"
    assert [row[0] for row in lost.rows] == ["query 14", "query 15", "query 16"]
    page = render_report(Report("verdict", "summary", sections))
    assert "The queries that gained most" in page


def test_where_nothing_is_clear_the_advice_stands_in_the_report():
    changes = build_changes([1, -1] * 10)
    assert changes.verdict.word == "NO CLEAR DIFFERENCE"
    shown = [getattr(each, "text", "") for each in changes.draw()]
    assert any("--negatives mine" in text for text in shown)
    assert changes.verdict.list_advice()[0].startswith("More held-out rows")


def test_pairs_are_shown_with_both_similarities():
    truth = np.arange(12.0)
    examples = [SimpleNamespace(shown=f"pair {n}", number=float(n), group=None) for n in range(12)]
    scoring = Pairs(examples, [Similarity(n / 20) for n in range(12)])
    start = RowValues(scoring.guess[::-1].copy(), truth)
    verdict = judge("spearman", start, [(1, scoring.row_values)], np.arange(12))
    (gained,) = (
        each for each in HeldOutChanges(verdict, scoring, start).draw() if isinstance(each, Table)
    )
    assert gained.columns == ["Pair", "Similarity before", "After", "True similarity"]
    assert [str(cell) for cell in gained.rows[0]] == ["pair 0", "0.550", "0", "0"]
