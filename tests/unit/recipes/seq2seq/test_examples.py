from tests.unit.recipes.seq2seq.small import QUICK

from bertkit.recipes.seq2seq.examples import read_data


def test_another_seed_keeps_the_split_where_that_has_its_own(files):
    def part(**seeds):
        return read_data(files.train, None, QUICK.model_copy(update=seeds))

    assert part(seed=1, split_seed=5) == part(seed=2, split_seed=5) == part(seed=5)
    assert part(seed=1).dev.pairs != part(seed=1, split_seed=5).dev.pairs
    assert part(seed=5, split_seed=0) == part(seed=0)
