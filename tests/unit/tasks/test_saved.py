import pytest

from bertkit.base.errors import CheckpointError
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.saved import SavedTask, load_task


def test_a_folder_of_a_task_that_is_gone_is_refused_by_its_name(tmp_path):
    SavedTask(task="extract", settings={"sentences": 3}).save(tmp_path / "task.json")
    with pytest.raises(CheckpointError, match=r"task\.json: there is no task 'extract'; there are"):
        load_task(tmp_path, BertConfig(vocab_size=10), "BertForTokenClassification")
