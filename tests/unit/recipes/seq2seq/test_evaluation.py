"""What a model is held against: copied beginnings, and the right texts themselves."""

from types import SimpleNamespace

import pytest

from bertkit.recipes.seq2seq.evaluation import RIGHT_CHARS, copy_beginnings, measure_right


def context(sources, targets, kind=None):
    part = SimpleNamespace(sources=sources, targets=targets)
    saved = SimpleNamespace(max_target_length=16)
    return SimpleNamespace(data=SimpleNamespace(train=part, dev=part), saved=saved, kind=kind)


@pytest.mark.parametrize(
    ("sources", "targets", "copied"),
    [
        (["one  two\nthree", ""], ["eins", "eins zwei drei"], ["one two", ""]),
        (["今天天气很好，我们去公园。"], ["天气很好。"], ["今天天气"]),
        (["ที่นี่ดีมาก"], ["ดีมาก"], ["ที่นี่ดีม"]),
        (["one " * 99], ["eins " * 60], ["one " * 15 + "one"]),  # as the model may write
        (["one two"], ["…"], ["one"]),
    ],
)
def test_as_many_words_are_copied_as_are_right(sources, targets, copied):
    assert copy_beginnings(context(sources, targets)) == copied


def test_right_texts_are_not_measured_whole():
    def measure(written, right):
        assert written == right
        return {"chars": max(map(len, written))}

    kind = SimpleNamespace(load_measure=lambda: measure)
    assert measure_right(context([], ["a" * 9999, "b"], kind)) == {"chars": RIGHT_CHARS}
