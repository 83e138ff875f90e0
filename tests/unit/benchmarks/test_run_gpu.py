"""`make gpu`: what is run, what is gone on with, what is ended, and what is told of it."""

import importlib
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
BENCHMARKS = ROOT / "benchmarks"
MACHINE = {"gpu": "H200", "torch": "2.11.0", "code": "0123"}
FOR_EVER = "import threading; threading.Event().wait()"
FOREVER_WITH_A_CHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {FOR_EVER!r}])
print("| begun |", flush=True)
{FOR_EVER}
"""
# More than a pipe holds is written first, so that the parent reads by the time it is stopped.
STOP_THE_PARENT = (
    "import os, signal; print('x' * 200_000, flush=True);"
    f" os.kill(os.getppid(), signal.SIGINT); {FOR_EVER}"
)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("run_gpu")


@pytest.fixture
def place(gpu, tmp_path):
    return gpu.Place(tmp_path / "results", tmp_path / "work", None)


def part(gpu, name, program="print('| 1 |')", **more):
    return gpu.Part(name, name.title(), ("-c", program), **{"minutes": 8.0, **more})


def run(gpu, place, *parts, seconds=float("inf"), **more):
    gpu.run_parts(parts, place, MACHINE, seconds, **more)
    return gpu.read_records(place)


def test_without_a_gpu_one_line_says_so(gpu, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--output", str(tmp_path / "results")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(r"no GPU here: PyTorch \S+ finds none\n", told.err)
    assert not (tmp_path / "results").exists()


def test_a_part_that_is_done_is_not_run_again_but_one_that_failed_is(gpu, place, tmp_path):
    note = "open({!r}, 'a').write({!r}); "
    log = str(tmp_path / "log")
    good = part(gpu, "good", note.format(log, "good "))
    bad = part(gpu, "bad", note.format(log, "bad ") + "raise SystemExit(3)")
    first = run(gpu, place, bad, good)
    assert (first["good"]["state"], first["bad"]["state"]) == ("done", "failed (3)")
    new = part(gpu, "new", note.format(log, "new "))
    second = run(gpu, place, bad, good, new)  # what wasn't tried comes first
    assert Path(log).read_text() == "bad good new bad "
    assert [second[name]["tries"] for name in ("good", "bad", "new")] == [1, 2, 1]
    run(gpu, place, good, is_again=True)
    assert Path(log).read_text().endswith("bad good ")


def test_a_part_ends_at_its_limit_with_all_that_it_began(gpu, place):
    late = part(gpu, "late", FOREVER_WITH_A_CHILD, minutes=0.02)  # else it waits for the child
    records = run(gpu, place, late, part(gpu, "next"))
    assert records["late"]["state"] == "not finished in 0.02 minutes"
    assert records["next"]["state"] == "done"


def test_what_is_stopped_is_written_and_ends_the_run(gpu, place):
    records = run(gpu, place, part(gpu, "stopped", STOP_THE_PARENT), part(gpu, "next"))
    assert records["stopped"]["state"] == "stopped"
    assert "next" not in records


def test_no_part_is_begun_that_could_go_beyond_the_minutes(gpu, place, capsys):
    long, short = part(gpu, "long", minutes=8.0), part(gpu, "short", minutes=2.0)
    assert run(gpu, place, long, short, seconds=300.0).keys() == {"short"}
    assert "long: no time is left for its 8 minutes" in capsys.readouterr().out


def test_what_is_missing_is_told_and_its_part_left_out(gpu, place, capsys):
    parts = (
        part(gpu, "without", packages=("no_such_package",)),
        gpu.Part("data", "Data", ("-c", "", "{data}"), 1.0),
        gpu.Part("shards", "Shards", ("-c", "", "{shards}"), 1.0),
    )
    records = run(gpu, place, *parts)
    assert {record["state"] for record in records.values()} == {"left out"}
    assert records["without"]["reason"] == "not installed: no_such_package"
    assert "no data sets" in records["data"]["reason"]
    assert "the part materials" in records["shards"]["reason"]
    gpu.tell_missing(parts)
    assert "--dest wheels no_such_package\n" in capsys.readouterr().out
    assert gpu.tell_results(parts, place) == 1


def test_what_others_read_comes_first_and_is_done_where_it_is(gpu, place):
    made = place.work / "shards"
    program = f"from pathlib import Path; Path({str(made)!r}).mkdir(parents=True)"
    materials = part(gpu, "materials", program, makes="shards")
    reader = gpu.Part("reader", "Reader", ("-c", "import sys; print(sys.argv[1])", "{shards}"), 1.0)
    assert list(run(gpu, place, reader, materials)) == ["materials", "reader"]
    assert gpu.tell_results([reader, materials], place) == 0
    made.rmdir()
    assert gpu.tell_results([reader, materials], place) == 1


def test_figures_and_tables_are_written(gpu, place, monkeypatch):
    program = "import sys; open(sys.argv[1], 'w').write('{\"speed\": 7}'); print('| 7 |')"
    table = gpu.Part("table", "A table", ("-c", program, "{output}"), 1.0)
    broken = part(gpu, "broken", "raise SystemExit('no kernel')")
    monkeypatch.setattr(gpu, "PARTS", (table, broken))
    records = run(gpu, place, table, broken)
    assert json.loads(place.results.read_text()) == records
    assert records["table"]["figures"] == {"speed": 7}
    text = (place.output / "tables.md").read_text()
    assert "| table | done |" in text
    assert "| 7 |" in text
    assert "failed (1):\n\n```\nno kernel\n```" in text
    assert str(place.work) not in text


def test_every_benchmark_has_a_part_or_a_reason_to_have_none(gpu):
    scripts = {word for each in gpu.PARTS for word in each.words if word.startswith("benchmarks/")}
    measured = {Path(word).stem for word in scripts if "bench_" in word}
    assert measured.isdisjoint(gpu.LEFT_OUT)
    assert measured | gpu.LEFT_OUT.keys() == {path.stem for path in BENCHMARKS.glob("bench_*.py")}


def test_each_part_has_a_name_of_its_own_and_less_than_nine_minutes(gpu):
    assert len({each.name for each in gpu.PARTS}) == len(gpu.PARTS)
    assert max(each.minutes for each in gpu.PARTS) < 9.0


def test_the_packages_are_those_of_the_project(gpu):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    assert needed <= set(gpu.OWN_PACKAGES.values())
    assert [name for name in gpu.OWN_PACKAGES if not gpu.can_import(name)] == []


def test_files_with_tests_for_a_gpu_are_found(gpu):
    files = sys.modules["gpu_parts"].list_gpu_tests()
    assert "tests/unit/nn/test_cuda.py" in files
    assert "tests/unit/benchmarks/test_run_gpu.py" not in files
