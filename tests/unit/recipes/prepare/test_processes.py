"""Workers, signals and threads: what can end a run, and what it says then."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base import local_workers
from bertkit.base.errors import DamagedFileError, InputError, ResumeError, StoppedError
from bertkit.base.parts import WorkersSettings
from bertkit.recipes.prepare import plan, run, work_unit
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.settings import PrepareSettings

SETTINGS = PrepareSettings(held_out=0.2)
ONE, TWO = WorkersSettings(workers=1), WorkersSettings(workers=2)


def test_the_callers_own_processes_live_on(corpus, tokenizer, tmp_path):
    (corpus / "e.txt").write_bytes(b"not \xff fine\n")
    here, there = multiprocessing.Pipe()
    mine = multiprocessing.get_context("spawn").Process(target=there.recv)
    mine.start()
    try:
        with pytest.raises(InputError, match="--max-broken 0 allows no"):
            prepare(
                [str(corpus)],
                tokenizer,
                tmp_path / "out",
                PrepareSettings(max_broken=0),
                workers=TWO,
            )
        assert multiprocessing.active_children() == [mine]
        here.send("end")  # a signal that was sent before this would end it another way
        mine.join()
        assert mine.exitcode == 0
    finally:
        mine.kill()
        mine.join()


def test_what_a_worker_cant_begin_with_is_said(corpus, tokenizer, tmp_path, monkeypatch):
    def damage(output, *rest):
        record = write_plan(output, *rest)
        (output / "tokenizer" / "vocab.txt").write_text("")
        return record

    write_plan = run.write_plan
    monkeypatch.setattr(run, "write_plan", damage)
    with pytest.raises(DamagedFileError, match=r"tokenizer/vocab\.txt has 0 bytes"):
        prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=TWO)


def test_a_script_without_a_guard_is_told_of_it(corpus, tokenizer, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from bertkit.base.parts import WorkersSettings\n"
        "from bertkit.recipes.prepare import plan, run\n"
        "from bertkit.recipes import settings\n"
        "plan.UNIT_BYTES = 3000\n"
        "two = WorkersSettings(workers=2)\n"
        f"inputs, tokenizer, output = [{str(corpus)!r}], Path({str(tokenizer)!r}), Path('out')\n"
        "run.prepare(inputs, tokenizer, output, settings.PrepareSettings(), workers=two)\n"
    )
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "SettingsError: 2 workers can't be started, for the reason above" in result.stderr
    assert 'below `if __name__ == "__main__":`' in result.stderr


@pytest.mark.parametrize("moment", ["find_unfinished", "write_manifest"])
def test_sigterm_is_an_order_to_stop_at_any_time(corpus, tokenizer, tmp_path, monkeypatch, moment):
    def terminate(*arguments):
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("it went on")

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(run, moment, terminate)
    with pytest.raises(StoppedError, match="of 3 parts done; run the same command to resume"):
        prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=ONE)
    assert signal.getsignal(signal.SIGTERM) == before


def test_ctrl_c_never_comes_amid_the_start_of_a_worker(corpus, tokenizer, tmp_path, monkeypatch):
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    submitted = []
    heard, tells = os.pipe()
    os.set_blocking(tells, False)
    before = signal.set_wakeup_fd(tells)

    class Interrupted(ProcessPoolExecutor):
        def submit(self, *work):
            signal.pthread_kill(other.ident, signal.SIGINT)  # Python hears it in the main thread
            os.read(heard, 1)  # from now on
            future = super().submit(*work)
            submitted.append(future)
            return future

    monkeypatch.setattr(local_workers, "ProcessPoolExecutor", Interrupted)
    monkeypatch.setattr(plan, "UNIT_BYTES", 10)
    other.start()
    try:
        with pytest.raises(StoppedError, match="0 of 6 parts done; run the same command to resume"):
            prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=TWO)
    finally:
        signal.set_wakeup_fd(before)
        over.set()
        other.join()
        os.close(heard)
        os.close(tells)
    assert len(submitted) == 4


def test_workers_never_get_what_a_terminal_sends_to_all_its_processes(
    corpus, tokenizer, tmp_path, monkeypatch
):
    def look(*arguments, **options):
        for child in multiprocessing.active_children():
            status = Path(f"/proc/{child.pid}/status").read_text(encoding="utf-8")
            blocked.append(int(status.partition("SigBlk:")[2].split()[0], 16))
        return wait(*arguments, **options)

    wait, blocked = local_workers.wait, list[int]()
    monkeypatch.setattr(local_workers, "wait", look)
    prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=TWO)
    assert blocked
    for number in (signal.SIGINT, signal.SIGHUP):
        assert all(mask >> (number - 1) & 1 for mask in blocked)


def test_workers_end_with_their_parent(corpus, tokenizer, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, os, signal\n"
        "from pathlib import Path\n"
        "from bertkit.base import local_workers\n"
        "from bertkit.base.parts import WorkersSettings\n"
        "from bertkit.recipes.prepare import plan, run\n"
        "from bertkit.recipes import settings\n"
        "def kill_parent(*arguments, **options):\n"
        "    done = wait(*arguments, **options)\n"
        "    if done[0]:\n"
        "        print(*(child.pid for child in multiprocessing.active_children()), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return done\n"
        "wait, local_workers.wait, plan.UNIT_BYTES = local_workers.wait, kill_parent, 10\n"
        "two = WorkersSettings(workers=2)\n"
        f"inputs, tokenizer, output = [{str(corpus)!r}], Path({str(tokenizer)!r}), Path('out')\n"
        "if __name__ == '__main__':\n"
        "    run.prepare(inputs, tokenizer, output, settings.PrepareSettings(), workers=two)\n"
    )
    # Whoever still holds the pipes keeps this call waiting, the workers too.
    result = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=TIMEOUT_SECONDS,
    )
    assert result.returncode == -signal.SIGKILL
    assert len(result.stdout.split()) == 2


def test_work_on_standard_input_is_begun_again(tokenizer, tmp_path, monkeypatch):
    def stop(*rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(work_unit, "prepare_unit", stop)
    advice = "start again with another --output or with --overwrite"
    with pytest.raises(StoppedError, match=f"0 of 1 parts done; {advice}$"):
        prepare(["-"], tokenizer, tmp_path / "out", SETTINGS)
    with pytest.raises(ResumeError, match=rf"which can't be read again\); {advice}$"):
        prepare(["-"], tokenizer, tmp_path / "out", SETTINGS)


def test_any_thread_may_prepare(corpus, tokenizer, tmp_path):
    with ThreadPoolExecutor(1) as executor:
        call = executor.submit(
            prepare, [str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=TWO
        )
    assert not call.result().was_done
