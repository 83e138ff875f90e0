"""New models of other architectures, trained from nothing through the command line."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from tests.closeness import assert_close
from tests.e2e.small import run
from tests.logs import rows_without_clock

from bertkit import BertForMaskedLM
from bertkit.base.checksums import FileRecord, record_file
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.cli.main import main


def begin(
    workshop: Path, output: Path, architecture: str, *more: object, size: object = "2x32"
) -> list[str]:
    words = (
        f"pretrain --data {workshop}/shards --size {size} --architecture {architecture}"
        f" --device cpu --output {output} --steps 24 --batch-size 8 --max-length 32"
        " --eval-examples 32 --schedule constant --warmup 0"
    )
    return [*words.split(), *map(str, more)]


def record_weights(folder: Path) -> FileRecord:
    return record_file(list_checkpoints(folder)[-1] / "model.safetensors")


@pytest.fixture(scope="module", params=["modernbert", "roberta"])
def begun(request, workshop, tmp_path_factory):
    output = tmp_path_factory.mktemp(request.param) / request.param
    assert main(begin(workshop, output, request.param)) == 0
    return output


def test_transformers_computes_the_same(begun):
    folder, architecture = list_checkpoints(begun)[-1], begun.name
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == architecture
    theirs, info = transformers.AutoModelForMaskedLM.from_pretrained(
        folder, output_loading_info=True
    )
    assert {name for name, found in info.items() if found} == set()
    ids = torch.randint(5, 100, (3, 20))
    with torch.no_grad():
        found = BertForMaskedLM.from_pretrained(begun)(ids)
        assert_close(found, theirs(ids).logits, "float32")


def test_it_learns(begun):
    losses = [
        row["mlm_loss"] for row in rows_without_clock(begun / "log.jsonl") if "mlm_loss" in row
    ]
    assert losses[-1] < losses[0] - 0.1


def test_less_memory_and_a_resumed_run_change_no_bit(begun, workshop, tmp_path, capsys):
    output = tmp_path / begun.name
    part = begin(workshop, output, begun.name, "--checkpoint-activations")
    part[part.index("--steps") + 1] = "10"
    run(capsys, *part)
    run(capsys, *begin(workshop, output, begun.name, "--checkpoint-activations"))
    assert record_weights(output) == record_weights(begun)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--objective bert", "doesn't predict the next sentence; train it on masked words alone"),
        ("--objective causal", "is_decoder must be false: a modernbert reads both ways"),
    ],
)
def test_what_a_modernbert_is_not_trained_on_is_refused(more, message, workshop, tmp_path, capsys):
    words = begin(workshop, tmp_path / "run", "modernbert")
    _, error = run(capsys, *words, *more.format(workshop=workshop).split(), code=2)
    assert message in error
    assert error.count("\n") == 1


def test_a_file_of_sizes_says_its_own_architecture(workshop, tmp_path, capsys):
    words = begin(workshop, tmp_path / "run", "roberta", size=workshop / "nano.json")
    _, error = run(capsys, *words, code=2)
    assert "nano.json is a bert; leave out architecture, roberta" in error


PAPER = ("--recipe", "paper", "--objective", "mlm")


def test_padding_of_a_file_of_sizes_is_that_of_the_vocabulary(workshop, tmp_path, capsys):
    sizes = json.loads((workshop / "nano.json").read_text())
    (path := tmp_path / "sizes.json").write_text(
        json.dumps({**sizes, "model_type": "roberta", "type_vocab_size": 2, "pad_token_id": 1})
    )
    words = begin(workshop, output := tmp_path / "run", "bert", *PAPER, size=path)
    run(capsys, *words)
    assert BertForMaskedLM.from_pretrained(output).config.pad_token_id == 0
    shown, _ = run(capsys, "fill-mask", "--model", output, "the cat [MASK].", "--device", "cpu")
    assert "the cat [MASK]." in shown
    path.write_text(json.dumps({**sizes, "model_type": "mpnet"}))
    words = begin(workshop, tmp_path / "other", "bert", *PAPER, size=path)
    _, error = run(capsys, *words, code=2)
    assert "MPNet has padding as entry 1, and the shards' vocabulary as entry 0" in error
