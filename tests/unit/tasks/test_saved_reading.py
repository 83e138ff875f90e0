"""A model knows the columns that were found, and how its training data were read."""

from tests.unit.tasks.test_labeled_table import SHOP, write_shop

from bertkit.base.settings import Settings
from bertkit.data.tables.settings import RecordSettings
from bertkit.recipes.finetune.data import FineTuningData
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.saved import open_for_model, save_task


def train(path, **settings: str):
    data = FineTuningData("classify", path, None, ClassifySettings(), FineTuneSettings(**settings))
    return data.task


def test_a_file_like_the_training_data_needs_no_flags(tmp_path):
    task = train(write_shop(tmp_path / "shop.csv"))
    assert task.settings.text_column == "Kommentar"
    assert task.settings.label_column == "Sterne"
    assert dict(task.reading) == {"encoding": "cp1252"}
    save_task(tmp_path, task)
    others = [{**row, "Titel": f"auch ein langer Text {n}"} for n, row in enumerate(SHOP)]
    path = write_shop(tmp_path / "others.csv", others)
    table = open_for_model(str(tmp_path), str(path), RecordSettings(), Settings(), split="test")
    assert table.columns == tuple(others[0])


def test_what_was_given_for_the_training_data_is_tried_for_others(tmp_path):
    path = write_shop(tmp_path / "shop.csv")
    content = path.read_bytes().decode("cp1252").replace(";", "^").replace("schöne", "žluťoučký")
    path.write_bytes(content.replace("ö", "ř").encode("cp1250"))
    task = train(path, encoding="cp1250", delimiter="^")
    assert dict(task.reading) == {"encoding": "cp1250", "delimiter": "^"}
    save_task(tmp_path, task)

    def open_file(path) -> tuple[str | None, str]:
        model, split = str(tmp_path), "test"
        table = open_for_model(model, str(path), RecordSettings(), Settings(), split=split)
        return table.encoding, next(table.records()).values["Kommentar"]

    assert open_file(path) == ("cp1250", "Sehr žluťoučký Jacke, gute Qualität 0")
    plain = write_shop(tmp_path / "plain.csv", encoding="utf-8")
    assert open_file(plain) == (None, "Sehr schöne Jacke, gute Qualität 0")
