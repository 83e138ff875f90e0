"""A verdict follows from whether the ranges of the runs overlap."""

import math
from dataclasses import replace

import pytest

from bertkit_studies.study import FIRST, LAST, Claim, Measure, Side
from bertkit_studies.verdict import Spread, Standing, Verdict, show_spread, show_value, summarize

ACCURACY = Measure("accuracy", "Accuracy", "of all", is_percent=True)
LOSS = Measure("loss", "Loss", "nats", is_higher_better=False)
CLAIM = Claim("One is better", "A 2018", "accuracy", Side("one"), Side("other"))


def judge(better, worse, measure=ACCURACY, claim=CLAIM) -> Verdict:
    return Verdict(claim, measure, Spread.of(better), Spread.of(worse))


@pytest.mark.parametrize(
    ("better", "worse", "standing"),
    [
        ((0.7, 0.8, 0.9), (0.4, 0.5, 0.6), Standing.SHOWN),
        ((0.4, 0.5, 0.6), (0.7, 0.8, 0.9), Standing.OPPOSITE),
        ((0.7, 0.8, 0.9), (0.5, 0.6, 0.71), Standing.NOT_SHOWN),
        ((0.7, 0.8, 0.9), (0.5, 0.6, 0.7), Standing.NOT_SHOWN),  # equal isn't better
        ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), Standing.NOT_SHOWN),
        ((0.8, 0.9), (0.4, 0.5, 0.6), Standing.UNDECIDED),
        ((0.7, 0.8, 0.9, math.nan), (0.4, 0.5, 0.6), Standing.UNDECIDED),
        ((0.7, 0.8, 0.9), (0.4, 0.5, 0.6, math.inf), Standing.UNDECIDED),
        ((), (0.4, 0.5, 0.6), Standing.NOT_MEASURED),
        ((), (math.nan,), Standing.UNDECIDED),
    ],
)
def test_what_the_ranges_say(better, worse, standing):
    assert judge(better, worse).standing is standing


def test_where_a_run_failed_nothing_is_decided():
    whole, rest = Spread.of((0.4, 0.5, 0.6)), Spread.of((0.7, 0.8, 0.9), num_failed=2)
    for sides in ((rest, whole), (whole, rest)):
        assert Verdict(CLAIM, ACCURACY, *sides).standing is Standing.UNDECIDED
    words = Verdict(CLAIM, ACCURACY, rest, Spread.of((0.4, math.nan))).explain()
    assert words == (
        "not decided: accuracy, one 80.0 % (70.0–90.0 %) against other 40.0 %;"
        " 2 of 5 runs of one and 1 of 2 runs of other failed or have no value"
    )
    history = Claim("It rises", "A", "accuracy", Side("one", LAST), Side("one", FIRST))
    assert Verdict(history, ACCURACY, rest, rest).explain().count("2 of 5 runs of one") == 1


@pytest.mark.parametrize(
    ("better", "worse", "standing"),
    [
        (Spread((0.8, 0.9, 0.7)), Spread((0.4, 0.5), num_diverged=1), Standing.SHOWN),
        (Spread((0.8, 0.9), num_diverged=1), Spread((0.4, 0.5, 0.6)), Standing.NOT_SHOWN),
        (Spread((0.4, 0.5), num_diverged=1), Spread((0.7, 0.8, 0.9)), Standing.OPPOSITE),
        (Spread((), num_diverged=3), Spread((0.7, 0.8, 0.9)), Standing.OPPOSITE),
        (Spread((0.8, 0.9), num_diverged=1), Spread((0.5,), num_diverged=2), Standing.NOT_SHOWN),
        (Spread((), num_diverged=3), Spread((), num_diverged=3), Standing.NOT_MEASURED),
        (Spread((0.8, 0.9, 0.7)), Spread((0.4,), num_diverged=1), Standing.UNDECIDED),
        (Spread((0.8, 0.9, 0.7)), Spread((0.4, 0.5), 1, num_diverged=1), Standing.UNDECIDED),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_run_that_diverged_is_the_worst(better, worse, standing, sign):
    turned = [
        replace(side, values=tuple(sign * value for value in side.values))
        for side in (better, worse)
    ]
    measure = ACCURACY if sign > 0 else LOSS
    assert Verdict(CLAIM, measure, *turned).standing is standing


def test_runs_that_diverged_are_told():
    words = Verdict(CLAIM, ACCURACY, Spread((0.7, 0.8, 0.9)), Spread((), num_diverged=3)).explain()
    assert words == (
        "shown: accuracy, one 80.0 % (70.0–90.0 %) against other no number; each of the 3 runs is"
        " better than each of the 3 others (chance alone: 1 in 20); 3 of 3 runs of other diverged,"
        " the worst value of all"
    )


def test_of_the_same_runs_chance_says_nothing():
    measure = Measure("accuracy", "Accuracy", "of all", across="steps")
    claim = Claim("It rises", "A", "accuracy", Side("one", LAST), Side("one", FIRST))
    words = judge((0.7, 0.8, 0.9), (0.4, 0.5, 0.6), measure, claim).explain()
    assert words.endswith("; each of the 3 runs is better than each of the 3 others")


def test_of_speeds_chance_says_nothing():
    speed = Measure("tokens_per_second", "Tokens a second", "here", is_speed=True)
    words = judge((7.0, 8.0, 9.0), (4.0, 5.0, 6.0), speed).explain()
    assert words.endswith("; each of the 3 runs is better than each of the 3 others")


def test_of_a_loss_the_lower_one_is_better():
    low, high = (1.0, 1.1, 1.2), (1.5, 1.6, 1.7)
    assert judge(low, high, LOSS).standing is Standing.SHOWN
    assert judge(high, low, LOSS).standing is Standing.OPPOSITE
    assert judge(low, (1.2, 1.6, 1.7), LOSS).standing is Standing.NOT_SHOWN


def test_the_words_say_what_was_found_and_what_was_measured():
    words = judge((0.7, 0.8, 0.9), (0.4, 0.5, 0.6)).describe()
    assert words == (
        "One is better (A 2018). Here: shown: accuracy, one 80.0 % (70.0–90.0 %) against other"
        " 50.0 % (40.0–60.0 %); each of the 3 runs is better than each of the 3 others"
        " (chance alone: 1 in 20)."
    )
    assert "each of the 3 runs is worse" in judge((0.4, 0.5, 0.6), (0.7, 0.8, 0.9)).explain()
    overlap = judge((0.7, 0.8, 0.9), (0.5, 0.6, 0.7)).explain()
    assert overlap.startswith("not shown at this scale: ")
    assert overlap.endswith("the ranges overlap, so the difference may be chance")
    assert "1 and 3 runs are too few, 3 of each" in judge((0.8,), (0.5, 0.6, 0.7)).explain()


def test_places_are_named():
    measure = Measure("accuracy", "Accuracy", "of all", across="steps")
    claim = Claim("It rises", "A", "accuracy", Side("one", LAST), Side("one", FIRST))
    words = judge((0.7, 0.8, 0.9), (0.4, 0.5, 0.6), measure, claim).explain()
    assert "one at last 0.800 (0.700–0.900) against one at first 0.500 (0.400–0.600)" in words
    claim = Claim("It rises", "A", "accuracy", Side("one", 1000.0), Side("one"))
    assert "one at 1,000 0.800" in judge((0.7, 0.8, 0.9), (0.4,), measure, claim).explain()


def test_numbers_as_people_read_them():
    assert show_value(ACCURACY, 0.1234) == "12.3 %"
    assert show_value(LOSS, 6.12345) == "6.123"
    assert show_value(LOSS, 12345.6) == "12,346"
    assert (show_value(LOSS, 0.0), show_value(LOSS, 1.2345e-7)) == ("0", "1.23e-07")
    assert show_value(LOSS, math.nan) == "not measured"
    assert show_spread(LOSS, Spread.of([])) == "not measured"
    assert show_spread(LOSS, Spread.of([2.0])) == "2.000"
    assert show_spread(LOSS, Spread.of([3.0, math.inf, 1.0, 2.5])) == "2.500 (1.000–3.000)"


def test_the_claims_are_counted():
    shown, open_ = judge((0.7, 0.8, 0.9), (0.4, 0.5, 0.6)), judge((0.7,), (0.4,))
    assert summarize([]) == "It has no claims"
    assert summarize([shown]) == "Of 1 published claim: 1 shown"
    assert summarize([shown, open_, shown]) == ("Of 3 published claims: 2 shown, 1 not decided")
