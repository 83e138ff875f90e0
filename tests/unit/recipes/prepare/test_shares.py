"""Ray and the tasks of a scheduler write the bytes that one process writes."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from tests.unit.recipes.prepare.test_prepare import ONE, SETTINGS, TWO, contents

from bertkit.base.errors import InputError, MissingFileError, ResumeError, SettingsError
from bertkit.base.parts import PartsSettings, WorkersSettings
from bertkit.cli.main import main
from bertkit.recipes.prepare import run, work_unit
from bertkit.recipes.prepare.run import prepare, prepare_share

RAY_TWO = WorkersSettings(run_on="ray", workers=2)


def share(text: str) -> PartsSettings:
    return PartsSettings(shard=text, workers=1)


@pytest.fixture
def whole(corpus, tokenizer, tmp_path):
    """What one process writes."""
    prepare([str(corpus)], tokenizer, tmp_path / "whole", SETTINGS, workers=ONE)
    return contents(tmp_path / "whole")


def test_two_shards_and_a_finish_write_the_same(corpus, tokenizer, tmp_path, whole):
    what = ([str(corpus)], tokenizer, tmp_path / "out", SETTINGS)
    assert prepare_share(*what, share("1/2")) == (3, 2)
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert prepare_share(*what, share("0/2")) == (3, 0)
    assert not prepare(*what, workers=ONE).was_done
    assert contents(tmp_path / "out") == whole
    assert prepare_share(*what, share("0/2")) == (3, 0)
    assert contents(tmp_path / "out") == whole


def test_shards_at_once_share_one_plan(corpus, tokenizer, tmp_path, whole):
    what = ([str(corpus)], tokenizer, tmp_path / "out", SETTINGS)
    with ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(prepare_share, *what, share(f"{n}/3")) for n in range(3)]
    assert [call.result().num_units for call in calls] == [3, 3, 3]
    prepare(*what, workers=TWO)
    assert contents(tmp_path / "out") == whole


def test_the_last_shard_finishes(corpus, tokenizer, tmp_path, whole, capsys):
    words = f"prepare {corpus} --tokenizer {tokenizer} --output {tmp_path}/out --held-out 0.2"
    assert main(f"{words} --workers 1 --shard 1/2".split()) == 0
    assert "2 of 3 parts missing; run the other shards, or" in capsys.readouterr().out
    assert main(f"{words} --workers 1 --shard 0/2".split()) == 0
    assert "MB/s" in capsys.readouterr().out
    assert contents(tmp_path / "out") == whole
    assert main(f"{words} --shard 0/2 --overwrite".split()) == 2
    assert main(f"{words} --shard 0/2 --run-on ray".split()) == 2


def test_two_processes_never_prepare_one_unit(corpus, tokenizer, tmp_path, monkeypatch):
    what = ([str(corpus)], tokenizer, tmp_path / "out", SETTINGS)
    refused = []

    def meet_another(*unit):
        with pytest.raises(ResumeError, match=r"is preparing .*00000\.json"):
            prepare_share(*what, share("0/2"))
        refused.append(True)
        monkeypatch.undo()
        prepare_unit(*unit)

    prepare_unit = work_unit.prepare_unit
    prepare_share(*what, share("1/2"))
    monkeypatch.setattr(work_unit, "prepare_unit", meet_another)
    prepare_share(*what, share("0/2"))
    assert refused == [True]


def test_a_shard_with_other_settings_is_refused(corpus, tokenizer, tmp_path):
    inputs, other = [str(corpus)], SETTINGS.model_copy(update={"seed": 3})
    prepare_share(inputs, tokenizer, tmp_path / "out", SETTINGS, share("1/2"))
    with pytest.raises(ResumeError, match="--seed 0 → 3"):
        prepare_share(inputs, tokenizer, tmp_path / "out", other, share("0/2"))
    with pytest.raises(SettingsError, match="standard input can be read by one process only"):
        prepare_share(["-"], tokenizer, tmp_path / "else", SETTINGS, share("0/2"))


def test_a_file_that_a_worker_doesnt_see_is_an_error(corpus, tokenizer, tmp_path, monkeypatch):
    def hide(*arguments):
        (corpus / "d.txt").unlink()
        return write_plan(*arguments)

    write_plan = run.write_plan
    monkeypatch.setattr(run, "write_plan", hide)
    with pytest.raises(MissingFileError, match=r"d\.txt was there when the work was planned"):
        prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=ONE)


@dataclass(frozen=True)
class DyingUnit(work_unit.PrepareUnit):
    """Kills its worker, once."""

    def __call__(self, unit, advance):
        mark = self.output.with_name("died")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        super().__call__(unit, advance)


@pytest.mark.parametrize("job", [work_unit.PrepareUnit, DyingUnit])
def test_ray_writes_the_same_though_a_worker_is_killed(
    corpus, tokenizer, tmp_path, whole, ray_cluster, monkeypatch, job
):
    monkeypatch.setattr(run, "PrepareUnit", job)
    prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=RAY_TWO)
    assert contents(tmp_path / "out") == whole
    assert (tmp_path / "died").exists() == (job is DyingUnit)


def test_a_broken_row_stops_ray_too_and_leaves_nothing(corpus, tokenizer, tmp_path, ray_cluster):
    (corpus / "e.txt").write_bytes(b"fine\nnot \xff fine\n")
    settings = SETTINGS.model_copy(update={"max_broken": 0})
    with pytest.raises(InputError, match=r"^corpus/e\.txt:2: --max-broken 0 allows no"):
        prepare([str(corpus)], tokenizer, tmp_path / "out", settings, workers=RAY_TWO)
    assert not (tmp_path / "out" / "plan.json").exists()
    prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=RAY_TWO)
