"""The way of a labeled row from its file to its loss: files of code, and reads of its file."""

import gzip

import pytest
from tests.unit.recipes.finetune.small import QUICK, TASK, make_rows, open_job, write_rows
from tests.unit.recipes.reading import Reading
from tests.unit.recipes.stopping import stop_at
from tests.walks import Walk, follow

from bertkit.base.errors import StoppedError
from bertkit.cli.main import main
from bertkit.data.tables.records import open_records
from bertkit.recipes.finetune.data import TaskSet
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.seeds import finetune_seeds
from bertkit.tasks.classify.examples import ClassifyExample

SHORT = QUICK.model_copy(update={"epochs": 1})
MOST_FILES = 24


@pytest.fixture
def files(tmp_path):
    return (
        write_rows(tmp_path / "train.csv", make_rows(40, 1)),
        write_rows(tmp_path / "dev.csv", make_rows(16, 2)),
    )


def test_a_row_passes_few_files_on_the_way_to_its_loss(made, files):
    """The file is open, and the model loaded; what the encoder computes isn't followed."""
    job = open_job(Sources("classify", str(made / "model"), str(files[0])), TASK, QUICK)
    walk = Walk()
    table = open_records(files[0])
    parse = ClassifyExample.build_parser(TASK, table, needs_answer=True)
    with follow(walk):
        labeled = TaskSet(table.name, [table], table.read(parse))
        labeled.encode(job.task, job.tokenizer)
        (part,) = job.share_at(0, rank=0, num_ranks=1)
    scores = job.model.scores(part.batch.packed)
    with follow(walk):
        loss = job.task.loss(scores, part.batch).losses["task"]
    assert loss.requires_grad
    assert {"data/tables/records.py", "recipes/finetune/data.py", "nn/packing.py"} <= walk.files
    assert len(walk.files) <= MOST_FILES, sorted(walk.files)


def test_a_file_is_opened_and_read_once(made, files, tmp_path, monkeypatch):
    reading = Reading(monkeypatch)
    sources = Sources("classify", str(made / "model"), *map(str, files))
    finetune(sources, tmp_path / "out", TASK, SHORT)
    reading.check_once(*files)


def test_a_file_is_read_once_for_all_seeds(made, files, tmp_path, monkeypatch):
    reading = Reading(monkeypatch)
    sources = Sources("classify", str(made / "model"), str(files[0]))
    finetune_seeds(sources, tmp_path / "out", TASK, SHORT, 3)
    reading.check_once(files[0])


def test_a_file_is_read_once_where_a_run_is_resumed(made, files, tmp_path, monkeypatch):
    sources = Sources("classify", str(made / "model"), str(files[0]))
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(StoppedError):
            finetune(sources, tmp_path / "out", TASK, QUICK)
    reading = Reading(monkeypatch)
    finetune(sources, tmp_path / "out", TASK, QUICK)
    reading.check_once(files[0])


def test_the_command_reads_no_row_again_for_the_example_that_it_shows(
    made, files, tmp_path, monkeypatch, capsys
):
    reading, output = Reading(monkeypatch), tmp_path / "out"
    flags = {"--model": made / "model", "--train": files[0], "--output": output, "--epochs": 1}
    words = [str(word) for flag in flags.items() for word in flag]
    assert main(["finetune", "classify", *words, "--max-length", "12", "--device", "cpu"]) == 0
    reading.check_once(files[0])
    first = files[0].read_text().splitlines()[1].partition(",")[0]
    assert f'Try: bertkit classify {output} "{first}"' in capsys.readouterr().err


def test_a_compressed_file_is_known_by_its_bytes_on_disk(files, tmp_path, monkeypatch):
    packed = tmp_path / "train.csv.gz"
    packed.write_bytes(gzip.compress(files[0].read_bytes()) + gzip.compress(b"the end,good\n"))
    reading = Reading(monkeypatch)
    table = open_records(packed)
    assert len(list(table.records())) == 41
    known = table.sha256
    reading.check_once(packed)
    assert known == open_records(packed).sha256
