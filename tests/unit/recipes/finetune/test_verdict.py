"""The verdict: which difference counts as one, and that no step is judged on what chose it."""

import math

import numpy as np
import pytest
from scipy import stats
from tests.closeness import close

from bertkit.recipes.finetune.verdict import (
    Verdict,
    choose_step,
    deal_folds,
    judge,
    judge_runs,
    number_groups,
    widen,
)
from bertkit.tasks.ranking import NDCG, RowValues

ROWS = 60


def values(mean: float, seed: int, rows: int = ROWS) -> RowValues:
    """Values of rows between 0 and 1, around a mean."""
    spread = np.random.default_rng(seed).normal(0.0, 0.2, size=rows)
    return RowValues(np.clip(mean + spread, 0.0, 1.0))


def compare(start: RowValues, *steps: RowValues, groups: np.ndarray | None = None) -> Verdict:
    """The verdict on steps 1, 2, … with the start among them."""
    rows = np.arange(len(start.values)) if groups is None else groups
    return judge(NDCG, start, list(enumerate((start, *steps))), rows)


def test_a_clear_gain_is_better():
    start, trained = values(0.4, 1), values(0.7, 2)
    found = compare(start, trained)
    assert (found.word, found.chosen) == ("BETTER", (1, 1))
    assert found.before == close(start.values.mean())
    assert found.after == close(trained.values.mean())
    assert found.difference == close(found.after - found.before)
    assert 0 < found.low < found.difference < found.high
    assert (found.num_rows, found.num_groups, found.num_changed) == (60, 60, 60)
    assert found.unit == "query"


def test_a_clear_loss_is_worse_if_the_start_may_not_be_the_model():
    start, trained = values(0.7, 1), values(0.4, 2)
    found = judge(NDCG, start, [(5, trained)], np.arange(ROWS))
    assert (found.word, found.chosen) == ("WORSE", (5, 5))
    assert found.high < 0


def test_a_loss_leaves_the_start_if_that_may_be_the_model():
    found = compare(values(0.7, 1), values(0.4, 2))
    assert (found.word, found.chosen) == ("NO CLEAR DIFFERENCE", (0, 0))
    assert (found.difference, found.low, found.high, found.num_changed) == (0.0, 0.0, 0.0, 0)


def test_the_best_of_many_noisy_steps_is_no_gain():
    """Chosen and judged on the same rows, the best of 200 has a clear gain."""
    start = RowValues(np.full(ROWS, 0.5))
    steps = [values(0.5, 100 + seed) for seed in range(200)]
    best = max(steps, key=lambda step: step.values.mean())
    assert judge(NDCG, start, [(1, best)], np.arange(ROWS)).word == "BETTER"
    found = compare(start, *steps)
    assert found.word == "NO CLEAR DIFFERENCE"
    folds = deal_folds(np.arange(ROWS))
    for fold in (0, 1):  # each is that of the other half
        choices = [start, *steps]
        means = [step.values[folds != fold].mean() for step in choices]
        assert found.chosen[fold] == int(np.argmax(means))


def test_shuffled_values_are_hardly_ever_better():
    words = []
    for seed in range(100):
        start = values(0.5, 1000 * seed)
        shuffled = [np.random.default_rng(seed + n).permutation(start.values) for n in range(4)]
        words.append(compare(start, *map(RowValues, shuffled)).word)
    assert words.count("BETTER") <= 6
    assert words.count("WORSE") <= 6


def test_rows_that_share_a_text_are_not_evidence_each():
    """Sixty rows of three texts: the same gain is clear only if the rows are independent."""
    start = RowValues(np.full(ROWS, 0.5))
    groups = np.repeat(np.arange(12), 5)
    gain = np.repeat(np.array([0.4, -0.2] * 4 + [0.3, 0.1, -0.2, 0.2]), 5)
    steps = [(1, RowValues(0.5 + gain))]
    assert judge(NDCG, start, steps, np.arange(ROWS)).word == "BETTER"
    found = judge(NDCG, start, steps, groups)
    assert (found.word, found.num_groups) == ("NO CLEAR DIFFERENCE", 12)


def test_few_groups_or_few_changes_give_no_verdict_and_say_why():
    few = judge(NDCG, values(0.2, 1, 9), [(1, values(0.8, 2, 9))], np.arange(9))
    assert (few.word, few.low > 0) == ("NO CLEAR DIFFERENCE", True)
    assert few.reason == "9 groups of held-out rows that share no text are too few to say."
    assert few.list_advice()[0] == few.reason
    assert "(" not in few.describe()  # no interval
    start = RowValues(np.zeros(ROWS))
    gained = RowValues(np.where(np.arange(ROWS) % 12 == 0, 1.0, 0.0))
    found = judge(NDCG, start, [(1, gained)], np.arange(ROWS))
    assert (found.word, found.low < 0, found.num_changed) == ("NO CLEAR DIFFERENCE", True, 5)
    assert compare(values(0.4, 1), values(0.7, 2)).reason == ""


def test_scored_pairs_are_compared_by_rank_correlation():
    generator = np.random.default_rng(4)
    truth = generator.random(80)
    start = RowValues(truth + generator.normal(0, 0.6, 80), truth)
    trained = RowValues(10 * truth + generator.normal(0, 1.0, 80), truth)  # on another scale
    found = judge("spearman", start, [(0, start), (1, trained)], np.arange(80))
    assert (found.word, found.unit, found.chosen) == ("BETTER", "pair", (1, 1))
    folds = deal_folds(np.arange(80))
    halves = [trained.measure((folds == fold).astype(float)) for fold in (0, 1)]
    assert found.after == close(np.mean(halves))


def test_an_undefined_metric_gives_no_verdict():
    truth = np.ones(20)
    same = RowValues(np.linspace(0, 1, 20), truth)
    found = judge("spearman", same, [(0, same)], np.arange(20))
    assert found.word == "NO CLEAR DIFFERENCE"
    assert found.reason == "Spearman correlation isn't defined on so few or so similar rows."
    assert "not defined" in found.describe()
    assert "nan" not in found.describe()


def test_the_line_says_before_after_and_the_interval():
    found = Verdict(
        word="BETTER",
        metric=NDCG,
        before=0.401,
        after=0.463,
        difference=0.062,
        low=0.039,
        high=0.086,
        num_rows=45,
        unit="query",
        num_groups=45,
        num_changed=20,
        chosen=(30, 40),
    )
    assert found.describe() == (
        "before: nDCG@10 40.1 %   after: 46.3 %   +6.2 (3.9 to 8.6) on 45 held-out queries: BETTER"
    )
    changes = {"metric": "spearman", "unit": "pair", "word": "NO CLEAR DIFFERENCE", "low": -0.01}
    assert found.model_copy(update=changes).describe() == (
        "before: Spearman correlation 0.401   after: 0.463   +0.062 (-0.010 to 0.086)"
        " on 45 held-out pairs: NO CLEAR DIFFERENCE"
    )


def test_the_earliest_of_equal_steps_is_chosen_and_an_undefined_one_never():
    nowhere = RowValues(np.full(4, np.nan))
    same = RowValues(np.array([0.0, 1.0, 1.0, 0.0]))
    steps = [(0, nowhere), (1, same), (2, same)]
    assert choose_step(steps, np.ones(4, dtype=bool)) == 1


def test_groups_are_those_of_the_rows():
    names = ["a", "b", "a", None, None, *"cdefgh"]
    groups, num_divided = number_groups(names, range(11))
    assert groups.tolist() == [0, 1, 0, 2, 3, 4, 5, 6, 7, 8, 9]
    assert num_divided == 0


def test_a_chain_of_most_rows_is_divided_by_passage_and_that_is_said():
    names = [*["chain"] * 8, *"abcd"]
    groups, num_divided = number_groups(names, ["x", "x", "y", "y", "z", "z", "u", "v", *"1234"])
    assert groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8]
    assert num_divided == 8
    found = judge_runs(
        NDCG, [{0: values(0.5, 1, 12)}], groups, may_be_first=True, num_divided=num_divided
    )
    assert "8 rows, which a chain of shared texts links, are in both" in found.describe_method()


def test_rows_with_the_same_passage_stay_a_group_however_large():
    """As in a list of frequent questions with few answers."""
    groups, num_divided = number_groups(["answer"] * 12 + [None] * 20, ["answer"] * 12 + [""] * 20)
    assert len(set(groups.tolist())) == 21
    assert num_divided == 0
    found = judge_runs(NDCG, [{0: values(0.5, 1, 32)}], groups, may_be_first=True)
    assert "rows that share a text are in the same half" in found.describe_method()


@pytest.mark.parametrize("number", [6, 7, 12, 60])
def test_an_interval_of_few_changed_groups_is_as_wide_as_of_student_s_t(number):
    wanted = stats.t.ppf(0.975, number - 1) / stats.norm.ppf(0.975)
    wanted *= math.sqrt(number / (number - 1))
    assert widen(1.0, 2.0, number) == close(1.0 + wanted, within=2e-3)
    assert widen(1.0, 0.0, number) == close(1.0 - wanted, within=5e-3)


def test_advice_is_for_a_start_or_for_a_head_that_is_random():
    rows = {0: values(0.7, 1), 4: values(0.4, 2)}
    found = judge_runs(NDCG, [rows], np.arange(ROWS), may_be_first=False)
    assert (found.word, found.is_head_random) == ("WORSE", True)
    (advice,) = found.list_advice()
    assert "--epochs" in advice
    assert "--batch-size" not in advice


def test_folds_have_about_as_many_rows_and_split_no_group():
    groups = np.repeat(np.arange(9), [1, 2, 3, 4, 5, 6, 7, 8, 9])
    folds = deal_folds(groups)
    assert len(folds) / 2 - 5 <= int(folds.sum()) <= len(folds) / 2 + 5
    for group in range(9):
        assert len(set(folds[groups == group].tolist())) == 1
    assert folds.tolist() == deal_folds(groups).tolist()
