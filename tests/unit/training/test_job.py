"""A step's examples are cut into micro-batches, the same for any number of processes."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.training.jobs import TrainingSettings, build_job, vary

from bertkit.training.job import Job, MicroBatch


def cut(num_examples: int, num_micro_batches: int, num_ranks: int) -> list[list[MicroBatch]]:
    job: Job = vary(
        build_job(TrainingSettings()),
        examples_at=lambda step: range(100 * step, 100 * step + num_examples),
        collate=list,
        num_micro_batches=num_micro_batches,
    )
    return [job.share_at(7, rank, num_ranks) for rank in range(num_ranks)]


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9))
def test_each_example_counts_once_in_order_and_all_ranks_have_as_many(size, parts, ranks):
    shares = cut(size, parts, ranks)
    assert len({len(share) for share in shares}) == 1
    parts_of_all = [part for share in shares for part in share]
    assert [part.number for part in parts_of_all] == list(range(len(parts_of_all)))
    counted = [example for part in parts_of_all if part.counts for example in part.batch]
    assert counted == list(range(700, 700 + size))
    assert all(list(part.batch) == [700] for part in parts_of_all if not part.counts)


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 4))
def test_micro_batches_do_not_depend_on_ranks_that_divide_their_number(size, own, ranks):
    [whole], shares = cut(size, own * ranks, 1), cut(size, own * ranks, ranks)
    assert [part for share in shares for part in share if part.counts] == whole
