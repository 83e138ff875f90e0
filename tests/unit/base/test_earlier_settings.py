import pytest

from bertkit.base.earlier_settings import update_settings


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ({"long_texts": "head", "stride": 9, "max_windows": 5}, {"long_texts": "truncate"}),
        (
            {"long_texts": "windows", "stride": 9, "max_windows": 32},
            {"long_texts": "windows", "stride": 9},
        ),
        ({"doc_stride": 128}, {"long_texts": "windows"}),
        ({"doc_stride": 64}, {"long_texts": "windows", "stride": 64}),
        ({"max_length": 128, "context": 32}, {"max_length": 128, "long_texts": "windows"}),
        (
            {"max_length": 12, "context": 3},
            {"max_length": 12, "long_texts": "windows", "stride": 7},
        ),
        (
            {"max_length": 12, "context": 90},
            {"max_length": 12, "long_texts": "windows", "stride": 5},
        ),
        ({"too_long": "cut"}, {"long_texts": "truncate"}),
        ({"max_length": 3, "context": 9}, {"max_length": 3, "long_texts": "windows", "stride": 1}),
        ({"too_long": "leave_out"}, {"long_texts": "leave_out"}),
        ({"start_from": "x"}, {"model": "x"}),
        (
            {"model": "tiny", "start_from": None, "eval_sequences": 8, "max_skipped_steps": 10},
            {"size": "tiny", "eval_examples": 8},
        ),
        ({"random_tokens": "uniform"}, {}),
        ({"strict": True}, {"max_broken": 0.0}),
        (
            {"share_embeddings": True, "layers": 1, "size": None, "max_source_length": 9},
            {"max_length": 9},
        ),
        ({"hidden_size": 8}, {"hidden_size": 8}),  # of another kind of run
        ({"best_by": "loss", "metric": "auto"}, {"metric": "loss"}),
        ({"best_by": "metric", "metric": "f1"}, {"metric": "f1"}),
        ({"best_by": "metric"}, {"metric": "auto"}),
        ({"best_by": "loss"}, {"metric": "loss"}),
        ({"find_threshold": True, "threshold": 0.5}, {"threshold": "best"}),
        ({"find_threshold": False, "threshold": 0.3}, {"threshold": 0.3}),
        ({"features": "linear", "feature_layers": "last_four"}, {"features": "last_four"}),
        ({"features": None, "feature_layers": "last"}, {}),
        ({"keep": 1, "keep_checkpoints": False}, {}),
        ({"keep": 1, "keep_checkpoints": True}, {"keep": 1}),
        ({"random_tokens": "frequency"}, {"random_tokens": "frequency"}),  # it can't be resumed
        ({"seed": 1}, {"seed": 1}),
    ],
)
def test_settings_of_earlier_versions_have_todays_names(saved, expected):
    found = update_settings(saved)
    assert {name: value for name, value in found.items() if value is not None} == expected
    assert update_settings(found) == found


@pytest.mark.parametrize(
    "saved",
    [
        {"long_texts": ["a"]},
        {"max_length": "9", "context": 3},
        {"max_length": True, "context": 3},
        {"max_length": 2, "context": 0},
        {"max_length": 9, "context": None},
        {"random_tokens": ["uniform"]},
        {"tag_column": {}},
    ],
)
def test_values_that_no_version_wrote_are_left_as_they_are(saved):
    assert update_settings(saved) == saved


@pytest.mark.parametrize("value", [None, 1, ["cut"]])
def test_what_too_long_never_was_becomes_the_value_of_long_texts(value):
    assert update_settings({"too_long": value}) == {"long_texts": value}


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"long_texts": "tail", "max_windows": 32}, "there is no long_texts tail now; train it"),
        ({"long_texts": "head_tail"}, "there is no long_texts head_tail now"),
        ({"long_texts": "windows", "max_windows": 5}, "max_windows is always 32 now; train it"),
    ],
)
def test_what_can_no_longer_be_read_alike_is_refused(saved, message):
    with pytest.raises(ValueError, match=message):
        update_settings(saved)
