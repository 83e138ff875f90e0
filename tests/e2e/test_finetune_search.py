"""Several runs and the best of them, through the command line."""

import json

import pytest
from tests.unit.recipes.finetune.small import save_model, write_tables

from bertkit.cli.main import main
from bertkit.recipes.finetune import comparison as search_cells


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(search_cells, "LEARNING_RATES", (1e-9, 1e-2))
    monkeypatch.setattr(search_cells, "BATCH_SIZES", (8,))
    monkeypatch.setattr(search_cells, "EPOCHS", (4.0,))


def test_a_grid_with_seeds(tmp_path, capsys):
    save_model(tmp_path / "model")
    write_tables(tmp_path)
    output = tmp_path / "out"
    command = (
        f"finetune classify --model {tmp_path}/model --train {tmp_path}/train.csv"
        f" --dev {tmp_path}/dev.csv --output {output} --max-length 12 --dropout 0 --device cpu"
        " --search paper --seeds 2"
    ).split()
    assert main([*command, "--learning-rate", "1e-3"]) == 2
    assert "--search paper chooses learning_rate" in capsys.readouterr().err
    (tmp_path / "settings.toml").write_text("[finetune.classify]\nbatch-size = 4\n")
    assert main([*command, "--config", str(tmp_path / "settings.toml")]) == 2
    assert "leave out --batch-size" in capsys.readouterr().err
    assert not output.exists()
    assert main(command) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert "run 4 of 4: learning rate 0.01, batch 8, epochs 4, seed 1" in captured.err
    assert lines[0].startswith("  learning rate 1e-09, batch 8, epochs 4  accuracy 50.0 % ")
    assert lines[1].startswith("* learning rate 0.01, batch 8, epochs 4   accuracy 100.0 % ")
    assert lines[2].startswith("Best of 4 runs: learning rate 0.01")
    assert lines[3].startswith(f"{output}: best after step ")
    assert "of 20; 16 held-out examples: accuracy 100.0 %" in lines[3]
    assert main([*command, "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert "is already finished" in captured.err
    assert [cell["is_best"] for cell in found["search"]] == [False, True]
    assert list(found["search"][1]["values"]) == ["0", "1"]
    assert main(["classify", str(output), "the cat", "--json"]) == 0
