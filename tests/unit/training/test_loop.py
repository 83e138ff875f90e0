import math
import signal
from functools import partial

import pytest
import torch
from tests.closeness import assert_close
from tests.logs import rows_without_clock
from tests.unit.training import jobs
from tests.unit.training.jobs import TrainingSettings, another, build_job, vary

from bertkit.base.errors import DamagedFileError, NonFiniteError, StoppedError
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.training.log import read_log
from bertkit.training.loop import fit
from bertkit.training.record import RunState
from bertkit.training.replica import Replica
from bertkit.training.step import derive_seed, take_step

SETTINGS = TrainingSettings(
    batch_size=12, accumulate=3, learning_rate=0.02, eval_every=4, checkpoint_every=5, keep=2
)


train = partial(jobs.train, settings=SETTINGS)


def test_it_learns_and_logs_every_step(run):
    _, state = train(run, 60)
    rows = list(read_log(run.log_path))
    steps = [row["step"] for row in rows if row["event"] == "train"]
    evaluations = [row for row in rows if row["event"] == "eval"]
    assert steps == list(range(1, 61))
    assert [row["step"] for row in evaluations] == list(range(0, 61, 4))
    assert evaluations[-1]["loss"] < 0.3 * evaluations[0]["loss"]
    assert state.step == 60
    assert state.tokens == 60 * 12
    assert state.best_loss == min(row["loss"] for row in evaluations)


def test_the_job_may_keep_more_of_each_evaluation(run):
    kept = []
    job = vary(build_job(SETTINGS), keep_evaluation=kept.append)
    fit(job, run, RunState(), 10)
    assert kept == [0, 4, 8, 10]


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path, run):
    whole, _ = train(run, 14, dropout=0.4)
    torch.manual_seed(999)
    other = another(run)
    calls = []

    def interrupt_at_twelve(step: int) -> bool:
        calls.append(step)
        if step == 12:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        train(other, 14, dropout=0.4, poison=interrupt_at_twelve)
    assert other.newest_state().step == 10
    resumed, _ = train(other, 14, dropout=0.4)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name
    first, second = (checkpoint_path(each.folder, 14) for each in (run, other))
    assert (first / "optimizer.safetensors").read_bytes() == (
        second / "optimizer.safetensors"
    ).read_bytes()
    assert rows_without_clock(run.log_path) == rows_without_clock(other.log_path)


def test_accumulating_changes_nothing_but_rounding():
    results = []
    for accumulate in (1, 4):
        settings = SETTINGS.model_copy(update={"accumulate": accumulate})
        job = build_job(settings)
        replica = Replica.build(job)
        take_step(job, replica, 0, 0.1)
        results.append(job.model.inner.weight.detach().clone())
    assert_close(results[0], results[1])


def test_a_step_depends_on_seed_step_and_weights_only():
    def weights_after(noise: int) -> torch.Tensor:
        job = build_job(SETTINGS, dropout=0.5)
        replica = Replica.build(job)
        torch.manual_seed(noise)
        take_step(job, replica, 7, 0.1)
        return job.model.outer.weight.detach().clone()

    assert torch.equal(weights_after(1), weights_after(2))
    seeds = {derive_seed(*key) for key in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]}
    assert len(seeds) == 4


def test_a_non_finite_step_is_not_applied_and_is_reported_with_step_and_examples(run, capfd):
    job, state = train(run, 6, poison=lambda step: step == 3)
    rows = list(read_log(run.log_path))
    (report,) = [row for row in rows if row["event"] == "not-finite"]
    assert report["step"] == 4
    assert "step 3" in report["examples"]
    assert "step 4: loss or gradient is not finite" in capfd.readouterr().err
    assert all(bool(torch.isfinite(p).all()) for p in job.model.parameters())
    assert [row["step"] for row in rows if row["event"] == "train"] == [1, 2, 3, 5, 6]
    assert state.num_skipped == 0


def test_a_non_finite_step_leaves_weights_and_optimizer_alone():
    job = build_job(SETTINGS, poison=lambda step: step == 1)
    replica = Replica.build(job)
    take_step(job, replica, 0, 0.1)
    before = {name: tensor.clone() for name, tensor in job.model.state_dict().items()}
    moments = replica.optimizer.state[job.model.outer.weight]["exp_avg"].clone()
    assert not take_step(job, replica, 1, 0.1).is_applied
    assert all(torch.equal(before[n], t) for n, t in job.model.state_dict().items())
    assert torch.equal(replica.optimizer.state[job.model.outer.weight]["exp_avg"], moments)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_with_a_checkpoint_after_the_step(run, number):
    before = signal.getsignal(number)

    def send_at_seven(step: int) -> bool:
        if step == 7:
            signal.raise_signal(number)
        return False

    with pytest.raises(StoppedError, match="the same command resumes") as caught:
        train(run, 20, poison=send_at_seven)
    assert caught.value.exit_code == 75
    assert run.newest_state().step == 8
    assert signal.getsignal(number) == before
    _, state = train(run, 20)
    assert state.step == 20


@pytest.mark.parametrize("num_reads", range(7))
def test_a_signal_between_any_two_lines_loses_nothing(run, stopped_at_read, num_reads):
    settings = SETTINGS.model_copy(update={"eval_every": 2})
    with stopped_at_read(num_reads), pytest.raises(StoppedError) as caught:
        train(run, 4, settings=settings)
    step = run.newest_state().step
    assert f"after step {step} of 4" in str(caught.value) or step == 0
    train(run, 4, settings=settings)
    rows = [(row["event"], row["step"]) for row in read_log(run.log_path)]
    assert rows[:4] == [("eval", 0), ("train", 1), ("train", 2), ("eval", 2)]
    assert rows[4:] == [("train", 3), ("train", 4), ("eval", 4)]


def test_a_signal_ends_an_evaluation_and_it_is_made_when_the_run_is_taken_up(run):
    job = build_job(SETTINGS)
    steps = iter(range(0, 20, 4))

    def interrupt(step: int) -> bool:
        raise KeyboardInterrupt

    def evaluate():
        if next(steps) == 8:
            signal.raise_signal(signal.SIGTERM)
            pytest.fail("the evaluation went on")
        return {"loss": 1.0}

    with pytest.raises(StoppedError, match="after step 8 of 20"):
        fit(vary(job, evaluate=evaluate), run, RunState(), 20)
    assert run.newest_state().evaluated_step == 4
    with pytest.raises(KeyboardInterrupt):  # after it was made, and before the next checkpoint
        train(run, 20, poison=interrupt)
    train(run, 20)
    steps = [row["step"] for row in read_log(run.log_path) if row["event"] == "eval"]
    assert steps == [0, 4, 8, 12, 16, 20]


def test_a_held_out_loss_that_is_not_finite_ends_the_run(run):
    job = build_job(SETTINGS)
    losses = iter([1.0, 0.9, math.nan])
    job = vary(job, evaluate=lambda: {"loss": next(losses)})
    with pytest.raises(NonFiniteError, match=r"after step 8 .*nan; lower --learning-rate"):
        fit(job, run, RunState(), 20)
    assert run.newest_state().step == 5


@pytest.mark.parametrize("event", ["train", "eval"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_row_that_was_synced_is_never_dropped_in_silence(run, event, is_lost):
    """Not even the last ones, of the very step at which the run is taken up."""
    train(run, 8)
    lines = run.log_path.read_bytes().splitlines(keepends=True)
    assert b'"eval", "step": 8' in lines[-1]
    place = -1 if event == "eval" else -2
    lines[place:] = [] if is_lost else [lines[place].replace(b"loss", b"lost"), *lines[place:][1:]]
    run.log_path.write_bytes(b"".join(lines))
    problem = r"log\.jsonl has \d+ rows and was saved" if is_lost else r"log\.jsonl:1\d isn't a row"
    with pytest.raises(DamagedFileError, match=problem):
        train(run, 12)


def test_a_log_that_is_gone_begins_anew_and_that_is_said(run, capfd):
    train(run, 5)
    run.log_path.unlink()
    train(run, 10)
    assert "log.jsonl is missing; starting a new log" in capfd.readouterr().err
    train(run, 12)
    steps = [row["step"] for row in read_log(run.log_path) if row["event"] == "train"]
    assert steps == [6, 7, 8, 9, 10, 11, 12]
