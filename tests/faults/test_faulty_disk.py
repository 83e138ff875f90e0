"""A disk that refuses any operation, once or from then on, and Ctrl-C at any of them."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.faults.disk import OPERATIONS, Tree, read_tree, stand_in
from tests.letters import letters_tokenizer, prepare_corpus, write_letters

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import StoppedError, StorageError
from bertkit.base.output import LOCK_FILE
from bertkit.checkpoints.safetensors_file import write_safetensors
from bertkit.checkpoints.torch_tensors import lazy_tensors
from bertkit.data.shards import MANIFEST, ShardSet
from bertkit.training import log as log_module
from bertkit.training.lifecycle import open_run
from bertkit.training.log import RunLog, read_log
from bertkit.training.record import LOG_FILE, RunRecord, RunState
from bertkit.training.run import Run

KEEP = 2
UMASK = 0o027
RECORD = RunRecord(settings={}, data_fingerprint="", model={}, num_steps=9, versions={})


def keep_first(names: Iterable[str]) -> list[Any]:
    """The names as parameters, of which `make test` tries the first."""
    first, *others = names
    return [first, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in others)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """No waiting for the disk, no TensorBoard, and a user who shows files to the group only."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr(log_module, "find_spec", lambda name: None)
    before = os.umask(UMASK)
    yield
    os.umask(before)


class Fault:
    """Something that happens at one operation, counted from 0.

    Args:
        happen: is handed the operation, to do or not; from then on `lasts` or once.
    """

    def __init__(
        self, happen: Callable[[Callable[..., Any], tuple[Any, ...]], Any], *, lasts: bool = False
    ) -> None:
        self.happen, self.lasts = happen, lasts
        self.names: list[str] = []

    def install(self, patches: pytest.MonkeyPatch, at: int | None) -> None:
        """Let it happen at operation number `at`, or never, and note the operations' names."""
        self.names = []
        stand_in(patches.setattr, partial(self._operate, at))

    def _operate(
        self, at: int | None, name: str, original: Callable[..., Any], *arguments: Any
    ) -> Any:
        number = len(self.names)
        self.names.append(name)
        if at is None or number < at or (number > at and not self.lasts):
            return original(*arguments)
        if name == "close":  # the system closes even where it complains
            original(*arguments)
            return self.happen(lambda *_: None, arguments)
        return self.happen(original, arguments)


def refuse(code: int) -> Callable[..., Any]:
    def happen(original: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        raise OSError(code, os.strerror(code))

    return happen


def interrupt_before(original: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    raise KeyboardInterrupt


def interrupt_after(original: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    original(*arguments)
    raise KeyboardInterrupt


def shorten(original: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    if original.__name__ != "write":
        return original(*arguments)
    descriptor, data = arguments
    return original(descriptor, data[: max(1, len(data) // 3)])


FAULTS = {
    "no space": Fault(refuse(errno.ENOSPC)),
    "no space from then on": Fault(refuse(errno.ENOSPC), lasts=True),
    "I/O error": Fault(refuse(errno.EIO)),
    "I/O errors from then on": Fault(refuse(errno.EIO), lasts=True),
    "interrupted call": Fault(refuse(errno.EINTR)),
    "Ctrl-C before": Fault(interrupt_before),
    "Ctrl-C after": Fault(interrupt_after),
}
FEW_FAULTS = ["no space", "I/O errors from then on", "Ctrl-C after"]


class Trained:
    """A run whose weights and rows follow from the step; the real one without the arithmetic."""

    def __init__(self) -> None:
        self.model = torch.nn.Linear(30, 30)
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def go_on(self, folder: Path, num_steps: int) -> None:
        """Begin or go on, as the recipe and the loop do."""
        run = Run(folder)
        with open_run(run):
            run.read_record()
            state = run.newest_state()
            run.write_record(RECORD)
            with RunLog(run.log_path, state.step, state.num_log_rows) as log:
                for step in range(state.step + 1, num_steps + 1):
                    log.write("train", step, loss=1.0 / step)
                    log.sync()
                    self._put(step)
                    state = RunState(step=step, num_log_rows=log.num_rows)
                    run.save(state, self.model, self.optimizer, self._save_model)
                    run.rotate(KEEP)

    def _put(self, step: int) -> None:
        for parameter in self.model.parameters():
            parameter.data.fill_(step)
            state = {"step": torch.tensor(float(step))}
            moments = {name: torch.full_like(parameter, step) for name in ("exp_avg", "exp_avg_sq")}
            self.optimizer.state[parameter] = state | moments

    def _save_model(self, folder: Path) -> dict[str, FileRecord]:
        name = "model.safetensors"
        return {name: write_safetensors(folder / name, lazy_tensors(self.model.state_dict()))}


@pytest.fixture(scope="module")
def trained():
    return Trained()


def read_run(folder: Path) -> Tree:
    tree = read_tree(folder)
    tree.pop(LOCK_FILE, None)
    return tree


def check_modes(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.name != LOCK_FILE:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o750 if path.is_dir() else 0o640), path


def check_end(fault: Fault, work: Callable[[], None], folder: Path, *, is_last: bool) -> None:
    """Work ends as it must: told which path and why, interrupted, or well."""
    if fault.happen in (interrupt_before, interrupt_after):
        with pytest.raises((KeyboardInterrupt, StoppedError)):
            work()
    elif is_last:  # the log is closed; what matters of it was synced
        work()
    else:
        with pytest.raises(StorageError) as caught:
            work()
        cause = caught.value.__cause__
        assert isinstance(cause, OSError)
        assert str(folder) in str(caught.value)
        assert os.strerror(cause.errno) in str(caught.value)


OF_VECTORS = {"open_within", "seek"}  # what only a file of vectors asks of the disk


@pytest.mark.parametrize("name", keep_first(FAULTS))
def test_a_fault_at_any_operation_of_a_run_keeps_the_last_checkpoint(
    tmp_path, monkeypatch, trained, name
):
    fault, before, whole = FAULTS[name], tmp_path / "before", tmp_path / "whole"
    trained.go_on(before, 2)
    shutil.copytree(before, whole)
    with monkeypatch.context() as patches:
        fault.install(patches, None)
        trained.go_on(whole, 3)
        operations = fault.names
    trained.go_on(whole, 4)  # where the last rotation failed, the next one makes up for it
    expected, steps = read_run(whole), [1, 2, 3]
    assert {*OPERATIONS} - OF_VECTORS <= {*operations}
    for at in range(len(operations)):
        run = tmp_path / str(at)
        shutil.copytree(before, run)
        with monkeypatch.context() as patches:
            fault.install(patches, at)
            work = partial(trained.go_on, run, 3)
            check_end(fault, work, run, is_last=at == len(operations) - 1)
        state = Run(run).newest_state()  # whole and verified
        assert state.step in {2, 3}
        rows = [row["step"] for row in read_log(run / LOG_FILE)]
        assert rows[: state.step] == steps[: state.step]
        trained.go_on(run, 4)
        assert read_run(run) == expected
        check_modes(run)
        shutil.rmtree(run)


@pytest.mark.exhaustive
@pytest.mark.parametrize("refused", ["__init__", "add_scalar"])
def test_a_disk_that_refuses_tensorboard_is_told_as_such(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(log_module, "find_spec", lambda name: True)
    monkeypatch.setattr(
        f"torch.utils.tensorboard.SummaryWriter.{refused}",
        lambda *_, **__: refuse(errno.ENOSPC)(None, ()),
    )
    with (
        pytest.raises(StorageError, match="tensorboard can't be written: No space left"),
        RunLog(tmp_path / "log.jsonl", 0, 0) as log,
    ):
        log.write("train", 1, loss=0.5)


@pytest.fixture
def corpus(tmp_path):
    """One unit, with both splits."""
    write_letters(tmp_path / "corpus", "a", 25)
    letters_tokenizer().save(tmp_path / "tokenizer")
    return tmp_path / "corpus"


@pytest.mark.exhaustive
def test_short_writes_change_nothing(tmp_path, monkeypatch, trained, corpus):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        with monkeypatch.context() as patches:
            Fault(shorten, lasts=True).install(patches, 0 if folder == cut else None)
            trained.go_on(folder / "run", 3)
            prepare_corpus(corpus, folder / "shards")
    for name in ("run", "shards"):
        assert read_run(whole / name) == read_run(cut / name)
        check_modes(cut / name)


@pytest.mark.parametrize("name", keep_first(FEW_FAULTS))
def test_a_fault_at_any_operation_of_preparing_leaves_what_can_be_gone_on_from(
    tmp_path, monkeypatch, corpus, name
):
    fault, whole = FAULTS[name], tmp_path / "whole"
    with monkeypatch.context() as patches:
        fault.install(patches, None)
        prepare_corpus(corpus, whole)
        operations = fault.names
    expected = read_run(whole)
    for at in range(len(operations)):
        output = tmp_path / str(at)
        with monkeypatch.context() as patches:
            fault.install(patches, at)
            check_end(fault, partial(prepare_corpus, corpus, output), output, is_last=False)
        if (output / MANIFEST).exists():
            ShardSet.open(output, verify="all")
        prepare_corpus(corpus, output)
        assert read_run(output) == expected
        check_modes(output)
        shutil.rmtree(output)
