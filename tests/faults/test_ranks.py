"""One run in several processes: the same steps on any number of them, whatever happens to one."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close, close
from tests.faults.children import CHECKPOINT_EVERY, NUM_STEPS, PROCESSES, list_differences
from tests.waiting import TIMEOUT_SECONDS

from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.checkpoints.torch_tensors import read_safetensors
from bertkit.cli.main import main
from bertkit.training.log import read_log

POLL_SECONDS, MOST_SECONDS_OF_A_HANG = 0.02, 60
NUM_KILLS = int(os.environ.get("BERTKIT_NUM_RANK_KILLS", "1"))


def take_post(words: Sequence[str], rank: int, num_ranks: int, port: int, messages: Path) -> None:
    """Run a command as one of the ranks."""
    torch.set_num_threads(1)
    environment = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": num_ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ |= {name: str(value) for name, value in environment.items()}
    with messages.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    sys.exit(main(words))


def run_ranks(words: Sequence[str], num_ranks: int, folder: Path) -> list[tuple[int, str]]:
    """Run a command in several processes; their exit codes and what each of them wrote."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    messages = [folder / f"rank-{rank}.txt" for rank in range(num_ranks)]
    children = [
        PROCESSES.Process(target=take_post, args=(words, rank, num_ranks, port, path))
        for rank, path in enumerate(messages)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(TIMEOUT_SECONDS)
        if child.exitcode is None:
            for each in children:
                each.kill()
            pytest.fail(f"a rank was still there after {TIMEOUT_SECONDS} s")
    return [
        (child.exitcode, path.read_text()) for child, path in zip(children, messages, strict=True)
    ]


def losses(run: Path, event: str = "train") -> list[float]:
    return [row["loss"] for row in read_log(run / "log.jsonl") if row["event"] == event]


def tokens(run: Path) -> list[int]:
    return [row["tokens"] for row in read_log(run / "log.jsonl") if row["event"] == "train"]


def train(words: list[str], num_ranks: int, folder: Path) -> None:
    endings = run_ranks(words, num_ranks, folder)
    assert [code for code, _ in endings] == [0] * num_ranks, endings


def change(words: list[str], changes: dict[str, str]) -> list[str]:
    """Replace the values of some flags, or add them."""
    words = [*words]
    for flag, value in changes.items():
        if flag in words:
            words[words.index(flag) + 1] = value
        else:
            words += [flag, value] if value else [flag]
    return words


@pytest.fixture(scope="module")
def alone(workshop, tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    train(workshop.words(folder / "run"), 1, folder)
    return folder / "run"


@pytest.mark.parametrize(
    ("num_ranks", "changes"),
    [
        (2, {}),
        (2, {"--fsdp": "", "--checkpoint-activations": ""}),
        (3, {"--dropout": "0"}),
        (3, {"--dropout": "0", "--accumulate": "1", "--batch-size": "4"}),
    ],
)
def test_the_same_steps_on_any_number_of_ranks(workshop, tmp_path, num_ranks, changes, alone):
    """With two micro-batches even dropout is the same on two ranks."""
    run = tmp_path / "run"
    if changes and "--fsdp" not in changes:
        alone = tmp_path / "alone"
        train(change(workshop.words(alone), changes), 1, tmp_path)
    train(change(workshop.words(run), changes), num_ranks, tmp_path)
    assert tokens(run) == tokens(alone)
    for event in ("train", "eval"):
        assert losses(run, event) == close(losses(alone, event), "float32")
    here, there = (
        read_safetensors(list_checkpoints(each)[-1] / "model.safetensors") for each in (run, alone)
    )
    for name, tensor in there.items():
        assert_close(here[name], tensor, within=1e-4)


def test_all_ranks_keep_the_minutes_of_the_first(workshop, tmp_path):
    """Each has a clock of its own; with other plans they would wait for each other forever."""
    run = tmp_path / "run"
    train(workshop.words(run, "--minutes 0.05"), 2, tmp_path)
    (last,) = [row for row in read_log(run / "log.jsonl") if row["event"] == "eval"][-1:]
    record = json.loads((run / "settings.json").read_text())
    assert record["num_steps"] == last["step"] == len(losses(run)) > 0


def without_warnings(messages: str) -> str:
    """What a rank wrote, but for torch's own warnings, which the command line turns off."""
    return "".join(line for line in messages.splitlines() if not line.startswith("[rank"))


def test_only_the_first_rank_writes_and_speaks(workshop, tmp_path):
    words = workshop.words(tmp_path / "run")
    (_, first), (_, second) = run_ranks(words, 2, tmp_path)
    assert f"step {NUM_STEPS}/{NUM_STEPS}" in first
    assert without_warnings(second) == ""
    (_, first), (_, second) = run_ranks(words, 2, tmp_path)
    assert "held-out" not in first
    assert without_warnings(second) == ""


def test_a_run_is_resumed_by_another_number_of_ranks(workshop, tmp_path):
    """With a constant rate, so that a run of 20 steps is the beginning of one of 30."""
    constant = {"--schedule": "constant", "--warmup": "0", "--dropout": "0"}
    run, straight = tmp_path / "run", tmp_path / "straight"
    for num_ranks, num_steps in ((1, 10), (2, 20), (1, 30)):
        train(change(workshop.words(run, f"--steps {num_steps}"), constant), num_ranks, tmp_path)
    train(change(workshop.words(straight, "--steps 30"), constant), 1, tmp_path)
    assert tokens(run) == tokens(straight)
    assert losses(run) == close(losses(straight), "float32")


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    rows = [f"the {'cat' if number % 2 else 'river'} {number},{number % 2}" for number in range(41)]
    path.write_text("\n".join(["text,label", *rows]))
    return path


@pytest.mark.parametrize("more", [["--accumulate", "2", "--epochs", "2"], ["--features", "last"]])
def test_fine_tuning_is_the_same_on_two_ranks(reviews, tmp_path, alone, more):
    outputs = []
    for num_ranks in (1, 2):
        output = tmp_path / f"model-{num_ranks}"
        words = (
            f"finetune classify --train {reviews} --model {alone} --output {output}"
            " --batch-size 8 --seed 3 --held-out 0.2 --max-length 32"
        )
        train([*words.split(), *more], num_ranks, tmp_path)
        outputs.append(output)
    one, two = (read_safetensors(output / "model.safetensors") for output in outputs)
    for name, tensor in one.items():
        assert_close(two[name], tensor, within=1e-3 * max(1.0, float(tensor.abs().max())))
    logs = [output / "run" for output in outputs]
    assert losses(logs[1]) == close(losses(logs[0]), "float32")
    one, two = ((output / "metrics.json").read_text() for output in outputs)
    assert json.loads(one)["metrics"] == close(json.loads(two)["metrics"], "float32")


def test_what_one_process_computes_refuses_several(reviews, tmp_path, alone):
    words = f"finetune classify --train {reviews} --model {alone} --output {tmp_path}/model"
    for code, message in run_ranks([*words.split(), "--seeds", "2"], 2, tmp_path):
        assert code == 2
        assert "--seeds" in message
        assert "runs in one process, and torchrun started 2" in message


@dataclass
class Launcher:
    """torchrun with two ranks, as users start it."""

    process: subprocess.Popen[bytes]
    messages: Path

    def wait_for(self, condition: Callable[[], object], seconds: float = TIMEOUT_SECONDS) -> None:
        for _ in range(int(seconds / POLL_SECONDS)):
            if condition():
                return
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(POLL_SECONDS)
                pytest.fail(self.messages.read_text())
        pytest.fail(f"waited for {seconds} s: {self.messages.read_text()}")

    def list_workers(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in path.read_text().split()]


@contextmanager
def launched(words: list[str], messages: Path, *flags: str) -> Iterator[Launcher]:
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", "2", "--monitor-interval", "0.1", *flags, "-m", "bertkit"),
        *words,
    ]
    with messages.open("w") as stream, subprocess.Popen(command, stderr=stream) as process:
        try:
            yield Launcher(process, messages)
        finally:
            process.terminate()
            process.wait(TIMEOUT_SECONDS)


def test_a_killed_rank_is_started_again_and_the_end_is_the_same(workshop, tmp_path):
    budget = f"--steps {CHECKPOINT_EVERY * (NUM_KILLS + 2)}"
    train(workshop.words(tmp_path / "undisturbed", budget), 2, tmp_path)
    run = tmp_path / "run"
    words, restarts = workshop.words(run, budget), ("--max-restarts", str(NUM_KILLS))
    with launched(words, tmp_path / "messages", *restarts) as launcher:
        for number in range(NUM_KILLS):
            before = list_checkpoints(run)[-1:]
            launcher.wait_for(lambda before=before: list_checkpoints(run)[-1:] != before)
            workers = launcher.list_workers()
            os.kill(workers[number % 2], signal.SIGKILL)
            launcher.wait_for(
                lambda workers=workers: not {*workers} & {*launcher.list_workers()},
                MOST_SECONDS_OF_A_HANG,
            )
        assert launcher.process.wait(TIMEOUT_SECONDS) == 0, launcher.messages.read_text()
    assert list_differences(tmp_path / "undisturbed", run) == []


def test_a_signal_to_the_launcher_ends_with_a_checkpoint(workshop, tmp_path):
    run = tmp_path / "run"
    words = change(workshop.words(run, "--steps 2000"), {"--checkpoint-every": "1000"})
    with launched(words, tmp_path / "messages") as launcher:
        launcher.wait_for(lambda: (run / "log.jsonl").exists() and len(losses(run)) > 3)
        launcher.process.send_signal(signal.SIGTERM)
        assert launcher.process.wait(TIMEOUT_SECONDS) != 0
    (checkpoint,) = list_checkpoints(run)
    step = int(checkpoint.name.removeprefix("step-"))
    assert step == len(losses(run))
    stopped = f"stopped after step {step:,} of 2,000 with a checkpoint"
    assert stopped in launcher.messages.read_text()


def test_dividing_a_model_needs_several_processes(workshop, tmp_path):
    words = [*workshop.words(tmp_path / "run"), "--fsdp"]
    ((code, message),) = run_ranks(words, 1, tmp_path)
    assert code == 2
    assert "start several by torchrun" in message
