"""Runs with a verdict: what is left in their folder, resumed and of several seeds."""

import itertools
import json

import pytest
from tests.closeness import close
from tests.unit.recipes.finetune.small import FILLERS
from tests.unit.recipes.stopping import stop_at

from bertkit.base.errors import StoppedError
from bertkit.recipes.finetune.row_files import EVALUATIONS, read_rows
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.seeds import finetune_seeds
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.finetune.verdict import judge_runs, number_groups
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.ranking import NDCG
from bertkit.tasks.rerank import RerankSettings
from bertkit.training.run import Run

PERMUTED = [*itertools.permutations(FILLERS, 3)]
TASK = EmbeddingSettings(max_length=12)
SETTINGS = FineTuneSettings(
    epochs=2,
    batch_size=16,
    learning_rate=1e-2,
    held_out=0.4,
    eval_every=2,
    dropout=0.0,
    device="cpu",
)


@pytest.fixture(scope="module")
def sources(made, tmp_path_factory):
    """Pairs that have all words in common but one."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    rows = [f"cat {' '.join(each)},dog {' '.join(each)}" for each in PERMUTED]
    path.write_text("\n".join(["query,passage", *rows]) + "\n", encoding="utf-8")
    return Sources("embed", str(made / "model"), str(path))


@pytest.fixture(scope="module")
def whole(sources, tmp_path_factory):
    """A run that nothing interrupted."""
    output = tmp_path_factory.mktemp("compared") / "model"
    return finetune(sources, output, TASK, SETTINGS)


def read_files(output):
    """The bytes of the evaluations' files, by name."""
    return {path.name: path.read_bytes() for path in (output / "run" / EVALUATIONS).iterdir()}


def test_a_run_leaves_the_values_of_its_rows_and_a_verdict(whole):
    verdict, saved = whole.saved.verdict, json.loads((whole.output / "metrics.json").read_text())
    rows = read_rows(Run(whole.output / "run"))
    assert list(rows) == [0, 2, 4, 6]
    assert verdict.num_rows == len(rows[0].values) == whole.saved.dev.num_examples == 24
    assert verdict.before == close(rows[0].values.mean())
    assert whole.saved.metrics[NDCG] == close(rows[whole.saved.best_step].values.mean())
    assert saved["verdict"]["word"] == verdict.word
    for name in ("README.md", "report.html"):
        told = " ".join((whole.output / name).read_text().split())
        assert f"{verdict.describe_difference()} on 24 held-out queries: {verdict.word}" in told


def test_a_resumed_run_has_the_same_values_and_the_same_verdict(sources, whole, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        stop_at(3, patch)
        with pytest.raises(StoppedError):
            finetune(sources, tmp_path / "model", TASK, SETTINGS)
    found = finetune(sources, tmp_path / "model", TASK, SETTINGS)
    assert found.saved.verdict == whole.saved.verdict
    assert read_files(found.output) == read_files(whole.output)


def test_any_step_of_any_seed_may_be_chosen(sources, tmp_path):
    found = finetune_seeds(sources, tmp_path / "model", TASK, SETTINGS, 2)
    runs = [Run(tmp_path / f"model/seeds/seed{seed}/run") for seed in (0, 1)]
    groups, _ = number_groups([None] * 24, range(24))
    wanted = judge_runs(NDCG, [read_rows(run) for run in runs], groups, may_be_first=True)
    assert found.saved.verdict == wanted
    assert json.loads((tmp_path / "model/metrics.json").read_text())["verdict"]["num_rows"] == 24


def test_a_lost_file_costs_the_verdict_and_not_the_model(sources, whole, tmp_path, capfd):
    with pytest.MonkeyPatch.context() as patch:
        stop_at(3, patch)
        with pytest.raises(StoppedError):
            finetune(sources, tmp_path / "model", TASK, SETTINGS)
    (tmp_path / "model/run" / EVALUATIONS / "0.json").unlink()
    found = finetune(sources, tmp_path / "model", TASK, SETTINGS)
    assert found.saved.verdict is None
    assert found.saved.metrics == whole.saved.metrics
    assert "no verdict: " in capfd.readouterr().err


def test_the_loss_as_metric_has_no_verdict(sources, tmp_path, capfd):
    task = TASK.model_copy(update={"metric": "loss"})
    assert finetune(sources, tmp_path / "model", task, SETTINGS).saved.verdict is None
    assert "no verdict: it chooses steps by its own metric" in capfd.readouterr().err


def test_a_reranker_whose_queries_have_one_passage_each_has_no_verdict(made, tmp_path):
    rows = [f"cat {' '.join(each)},dog,{n % 2}" for n, each in enumerate(PERMUTED[:30])]
    path = tmp_path / "train.csv"
    path.write_text("\n".join(["query,passage,label", *rows]) + "\n", encoding="utf-8")
    task = RerankSettings(max_length=12, negatives="file")
    settings = SETTINGS.model_copy(update={"epochs": 1.0})
    found = finetune(
        Sources("rerank", str(made / "model"), str(path)), tmp_path / "model", task, settings
    )
    assert found.saved.verdict is None
    assert any("ndcg@10 isn't defined" in warning for warning in found.saved.warnings)
