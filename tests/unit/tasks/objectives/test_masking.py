import numpy as np
import pytest
from tests.closeness import assert_close, close

from bertkit.base.errors import SettingsError
from bertkit.tasks.objectives.masking import Masker
from bertkit.tasks.objectives.settings import MaskingSettings

VOCABULARY = 1000
SPECIAL = frozenset(range(5))
CLS, SEP, MASK = 2, 3, 4
IS_CONTINUATION = np.arange(VOCABULARY) >= 600


def build(**settings) -> Masker:
    return Masker(
        MaskingSettings(**settings),
        mask_id=MASK,
        special_ids=SPECIAL,
        is_continuation=IS_CONTINUATION,
    )


def make_batch(num_sequences: int, seed: int = 0, words_only: bool = False):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(num_sequences):
        first, second = rng.integers(2, 60, 2)
        top = 600 if words_only else VOCABULARY
        ids = rng.integers(5, top, first + second)
        rows.append(np.concatenate([[CLS], ids[:first], [SEP], ids[first:], [SEP]]))
    return np.concatenate(rows), np.array([len(row) for row in rows])


def run(masker: Masker, ids, lengths, seed: int = 0):
    return masker.mask(
        ids, lengths, [np.random.default_rng((seed, n)) for n in range(len(lengths))]
    )


def within(rate: float, expected: float, count: int) -> bool:
    return abs(rate - expected) < 4.5 * np.sqrt(expected * (1 - expected) / count)


@pytest.mark.parametrize("whole_words", [False, True])
def test_each_sequence_has_its_exact_number_of_targets(whole_words):
    ids, lengths = make_batch(300, words_only=whole_words)
    masked = run(build(whole_words=whole_words), ids, lengths)
    ends = np.cumsum(lengths)
    counts = np.bincount(np.searchsorted(ends, masked.positions, side="right"), minlength=300)
    expected = np.maximum(1, np.rint(0.15 * (lengths - 3)))
    assert np.array_equal(counts, expected)


@pytest.mark.parametrize("whole_words", [False, True])
def test_eighty_ten_ten(whole_words):
    ids, lengths = make_batch(4000)
    masked = run(build(whole_words=whole_words), ids, lengths)
    now = masked.input_ids[masked.positions]
    count = len(now)
    kept_by_chance = 0.1 / (VOCABULARY - len(SPECIAL))
    assert within((now == MASK).mean(), 0.8, count)
    assert within((now == masked.labels).mean(), 0.1 + kept_by_chance, count)
    assert within(((now != MASK) & (now != masked.labels)).mean(), 0.1 - kept_by_chance, count)


@pytest.mark.parametrize("whole_words", [False, True])
def test_special_tokens_are_never_masked_and_the_rest_is_untouched(whole_words):
    ids, lengths = make_batch(500)
    masked = run(build(whole_words=whole_words), ids, lengths)
    assert not np.isin(masked.labels, list(SPECIAL)).any()
    assert np.array_equal(masked.labels, ids[masked.positions])
    others = np.setdiff1d(np.arange(len(ids)), masked.positions)
    assert np.array_equal(masked.input_ids[others], ids[others])
    assert (np.diff(masked.positions) > 0).all()


def test_every_place_is_as_likely():
    ids = np.concatenate([[CLS], np.arange(5, 25), [SEP]])
    masker, hits = build(), np.zeros(22)
    for seed in range(3000):
        hits[run(masker, ids, np.array([22]), seed).positions] += 1
    assert hits[0] == hits[21] == 0
    assert_close(hits[1:21] / 3000, np.full(20, 0.15), within=0.035)


def test_random_words_are_even():
    ids, lengths = make_batch(3000)
    changed = {"mask_rate": 0.4, "mask_token_share": 0.0, "random_token_share": 1.0}
    drawn = run(build(**changed), ids, lengths)
    now = drawn.input_ids[drawn.positions]
    assert len(now) / (lengths - 3).sum() == close(0.4, within=0.01)
    assert (now == drawn.labels).mean() < 0.01
    assert now.min() == 5
    assert now.max() == VOCABULARY - 1
    assert np.bincount(now, minlength=VOCABULARY)[5:].std() < 2 * np.sqrt(len(now) / 995)


def test_whole_words_are_masked_whole():
    ids, lengths = make_batch(400)
    masked = run(
        build(whole_words=True, mask_token_share=1.0, random_token_share=0.0), ids, lengths
    )
    is_chosen = np.zeros(len(ids), dtype=bool)
    is_chosen[masked.positions] = True
    # A continuation shares the fate of the piece before it, unless that one is special.
    goes_on = np.flatnonzero(IS_CONTINUATION[ids[1:]] & (ids[:-1] >= 5)) + 1
    assert np.array_equal(is_chosen[goes_on], is_chosen[goes_on - 1])
    assert is_chosen[goes_on].any()


def test_whole_words_never_go_over_the_number_unless_all_words_are_longer():
    long_word = np.concatenate([[CLS, 10], np.full(9, 700), [SEP]])
    masked = run(build(whole_words=True), long_word, np.array([12]))
    assert len(masked.positions) == 10
    mixed = np.concatenate([[CLS, 10], np.full(5, 700), np.arange(20, 34), [SEP]])
    for seed in range(50):
        assert len(run(build(whole_words=True), mixed, np.array([22]), seed).positions) == 3


def test_a_word_that_was_cut_off_is_none_of_the_segment_before():
    ids = np.array([CLS, 700, 10, SEP, 701, 11, SEP])  # each segment begins inside a word
    chosen = {
        tuple(run(build(whole_words=True, mask_rate=0.5), ids, np.array([7]), seed).positions)
        for seed in range(50)
    }
    assert chosen == {(1, 2), (1, 4), (1, 5), (2, 4), (2, 5), (4, 5)}


def test_nothing_to_mask_gives_no_target():
    masked = run(build(), np.array([CLS, SEP, SEP]), np.array([3]))
    assert len(masked.positions) == 0


def test_shares_above_one_are_refused():
    with pytest.raises(SettingsError, match="more than 1"):
        build(mask_token_share=0.9, random_token_share=0.2)
