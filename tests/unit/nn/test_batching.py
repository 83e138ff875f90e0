"""Which sequences are computed together."""

from bertkit.nn.batching import plan_batches


def test_batches_hold_each_sequence_once_and_keep_to_the_budget():
    lengths = [3, 9, 1, 4, 12, 2, 2]
    batches = list(plan_batches(lengths, 8))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert batches[0] == [4]  # longer than the budget, and alone
    assert all(len(batch) == 1 or sum(lengths[i] for i in batch) <= 8 for batch in batches)
    ordered = [lengths[index] for batch in batches for index in batch]
    assert ordered == sorted(lengths, reverse=True)
    assert list(plan_batches([], 8)) == []


def test_a_long_sequence_does_not_make_rows_of_its_length_of_all_short_ones():
    lengths = [2] * 700 + [512]
    batches = list(plan_batches(lengths, 2048))
    assert [len(batch) for batch in batches] == [8, 693]
    assert batches[0][0] == 700
