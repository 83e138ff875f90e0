"""`task.json`, also of earlier versions."""

import pytest

from bertkit.base.errors import CheckpointError
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.saved import SavedTask, load_task
from bertkit.tokenization.long_texts import TextCutter


def test_a_folder_of_a_task_that_is_gone_is_refused_by_its_name(tmp_path):
    SavedTask(task="extract", settings={"sentences": 3}).save(tmp_path / "task.json")
    with pytest.raises(CheckpointError, match=r"task\.json: there is no task 'extract'; there are"):
        load_task(tmp_path, BertConfig(vocab_size=10), "BertForTokenClassification")


@pytest.mark.parametrize(
    ("task", "settings", "cutter"),
    [
        ("classify", {"long_texts": "head", "stride": 9, "max_windows": 9}, TextCutter(40)),
        ("classify", {"long_texts": "windows", "max_windows": 32}, TextCutter(40, 20)),
        ("tag", {"max_length": 42, "context": 8}, TextCutter(40, 32)),
        ("answer", {"doc_stride": 30}, TextCutter(40, 30)),
    ],
)
def test_long_texts_are_read_as_an_earlier_version_read_them(task, settings, cutter, tmp_path):
    SavedTask(task=task, settings=settings).save(tmp_path / "task.json")
    config = BertConfig(vocab_size=10, num_labels=2)
    assert load_task(tmp_path, config, None).settings.cutter(40) == cutter
