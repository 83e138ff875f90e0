"""Loaded left-to-right models can be pickled and copied after use."""

from tests.closeness import close
from tests.unit.inference.test_pickling import TEXTS, copy_pickled

from bertkit import Generator, TextScorer


def test_a_left_to_right_model_can_be_copied_after_use(causal_folder):
    scorer, generator = TextScorer.load(causal_folder), Generator.load(causal_folder)
    expected = scorer(TEXTS)[0].log_probability, generator("the cat").text
    scorer, generator = copy_pickled((scorer, generator))
    assert scorer(TEXTS)[0].log_probability == close(expected[0], "float32")
    assert generator("the cat").text == expected[1]
