"""How many labels, and how long ones, a model's config has room for."""

import pytest

from bertkit.base.errors import InputError
from bertkit.base.json_files import write_json
from bertkit.checkpoints.huggingface import read_config
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.labels import MAX_LABELS, check_names


def test_what_fits_is_written_and_read_again(tmp_path):
    labels = [f"{number:040d}" for number in range(MAX_LABELS)]
    check_names(labels)
    config = BertConfig(id2label=dict(enumerate(labels)))
    write_json(tmp_path / "config.json", config.to_dict())
    assert BertConfig.from_dict(read_config(tmp_path), tmp_path).num_labels == MAX_LABELS


def test_too_many_labels_are_refused():
    with pytest.raises(InputError, match="100,001 labels, and a model supports at most 100,000"):
        check_names([str(number) for number in range(MAX_LABELS + 1)])


def test_labels_that_are_too_long_together_are_refused():
    with pytest.raises(InputError, match=r"names of 20,000 labels take 39 MiB of config\.json"):
        check_names([f"{number:01000d}" for number in range(20_000)])
