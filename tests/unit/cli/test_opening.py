"""What is wrong with a file is told before torch is loaded, with the command that works."""

import json
import subprocess
import sys

import pytest

from bertkit.tasks.saved import SavedTask

HEAD = "Nr;Kommentar;Titel;Sterne\n"
ROWS = "".join(f"{n};die Jacke ist schön {n};ein Titel dazu {n};{n % 3}\n" for n in range(30))
FILES = {
    "two texts.csv": (HEAD + ROWS).encode("cp1252"),
    "broken.csv": (HEAD.replace("Titel", "Land") + ROWS + "a;b\n" * 6).encode("cp1252"),
    "czech.csv": ("Kommentar\n" + "příliš žluťoučký kůň\n" * 9).encode("cp1250"),
}
CASES = {
    "finetune classify --train none.csv --output m": "none.csv doesn't exist",
    "evaluate model none.csv": "none.csv doesn't exist",
    "classify model --file none.csv": "none.csv doesn't exist",
    "review none.csv": "none.csv doesn't exist",
    "review two:texts.csv": "two texts.csv: the text could be Kommentar or Titel; the label is Ste",
    "review czech.csv": "czech.csv is text, but not in UTF-8",
    "evaluate model czech.csv": "czech.csv is text, but not in UTF-8",
    "classify model --file czech.csv --text-column a": "czech.csv is text, but not in UTF-8",
    "finetune classify --train two:texts.csv --output m": (
        "two texts.csv: the text could be Kommentar or Titel; the label is Sterne (0, 1, 2);"
        " choose with --text-column of Nr, Kommentar, Titel, Sterne\n"
        'Try: bertkit finetune classify --train "two texts.csv" --output m --text-column Kommentar'
    ),
    "evaluate model two:texts.csv": "two texts.csv has no column body; name one of its columns wi",
    "classify model --file two:texts.csv": "two texts.csv has no column body; name one of its col",
}


BROKEN = ["finetune", "classify", "--train", "broken.csv", "--output", "m"]
BROKEN += ["--text-column", "Kommentar"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each command says, in one process that never loads torch."""
    folder = tmp_path_factory.mktemp("opening")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "model").mkdir()
    saved = SavedTask(task="classify", settings={"text_column": "body"})
    saved.save(folder / "model" / "task.json")
    lines = [[word.replace(":", " ") for word in line.split()] for line in CASES]
    code = (
        "import json, sys; from bertkit.cli.main import main\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    assert main(line) == 2\n"
        "    print('---', file=sys.stderr)\n"
        "assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", code, json.dumps([*lines, BROKEN])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(zip([*CASES, "broken"], done.stderr.split("---\n"), strict=False))


@pytest.mark.parametrize("line", CASES)
def test_a_wrong_file_is_told_before_torch_is_loaded(answers, line):
    assert answers[line].startswith(f"bertkit: {CASES[line]}")


def test_too_many_broken_rows_are_told_with_the_flag_that_leaves_them_out(answers):
    said, shown = answers["broken"].splitlines()
    assert said.startswith("bertkit: broken.csv: 6 of 36 rows (16.7 %) are broken, and at most 3 ")
    assert shown == f"Try: bertkit {' '.join(BROKEN)} --max-broken 0.17"
