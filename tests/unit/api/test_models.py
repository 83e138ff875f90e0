"""The functions of a model's folder: describe it, export it, report how it was trained."""

import pytest
from tests.unit.recipes.report.small import eval_row, train_row, write_run

import bertkit
from bertkit.base.errors import SettingsError


def test_inspect_describes(model):
    described = bertkit.inspect(model)
    assert described.heads
    assert all(len(file.sha256) == 64 for file in described.files)


def test_export_takes_the_settings_of_the_command(model, tmp_path):
    pytest.importorskip("onnx")
    found = bertkit.export(model, output=tmp_path / "out", encoder_only=True)
    assert found.folder == tmp_path / "out"
    with pytest.raises(SettingsError, match="export has no setting encoder"):
        bertkit.export(model, output=tmp_path / "other", encoder=True)


def test_report_takes_one_run_or_several(tmp_path):
    rows = [train_row(10), eval_row(10), train_row(20)]
    first, second = write_run(tmp_path / "a", rows), write_run(tmp_path / "b", rows)
    found = bertkit.report(first)
    assert found.report == first / "report.html"
    both = bertkit.report(str(first), second, output=str(tmp_path / "both.html"))
    assert [facts.path for facts in both.runs] == [first, second]
    assert (tmp_path / "both.html").is_file()
