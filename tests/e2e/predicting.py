"""Commands that predict, with models that were trained beforehand, for tests without PyTorch."""

import json
import re
import subprocess
import urllib.request
from pathlib import Path

from tests.e2e.test_predict import WORDS, write_data
from tests.unit.recipes.finetune.small import save_model

from bertkit.cli.main import main

READY = re.compile(r"serving .* on http://[^ ]*:(\d+)")
TEXTS = ("The parcel never arrived.", "A train to the coast.", "Where is my order?")
TRAINED = (*WORDS, "rerank")
# By what is tested: the words after `bertkit`, in the folder that `make_models` fills.
COMMANDS = {
    "devices": "devices --json",
    "similarity": "similarity cat dog --json",
    "embed": "embed texts.txt --output vectors.npy --overwrite",
    "embed into lines": "embed texts.txt --output vectors.jsonl --overwrite",
    "search a file": "search parcel --corpus texts.txt --json",
    "index": "index add texts.bertkit texts.txt",
    "search an index": "search parcel --index texts.bertkit --json",
    "rerank": "rerank rerank parcel texts.txt --json",
    "fill-mask": 'fill-mask "A [MASK] to the coast." --json',
    "score": 'score "A train to the coast." --json',
    "features": "features texts.txt --output features.jsonl --overwrite",
    "nearest": "nearest train --json",
    "summarize": "summarize texts.txt --length 1 --json",
    "zero-shot": 'classify --labels "travel,delivery" "A train to the coast." --json',
    "explain": "classify classify cat --explain --json",
    "evaluate": "evaluate classify classify.jsonl --json",
    "inspect": "inspect classify --json",
    **{
        name: f"{name} {name} {' '.join(repr(word) for word in words)} --json"
        for name, words in WORDS.items()
    },
}


def make_models(folder: Path) -> None:
    """Train a small model for each task, and write the texts that the commands read."""
    save_model(folder / "model")
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    for task in TRAINED:
        data = write_data(folder, "classify" if task == "rerank" else task)
        words = (
            f"finetune {task} --model {folder}/model --train {data} --dev {data}"
            f" --output {folder}/{task} --epochs 1 --batch-size 8 --learning-rate 1e-2"
            " --device cpu --max-length 20 --precision fp32"
        )
        assert main(words.split()) == 0


def answer_request(python: str, folder: Path, environment: dict[str, str]) -> set[str]:
    """Start a server of a classifier, and return the labels that it names for a text."""
    words = [python, "-m", "bertkit", "serve", "classify", "--port", "0"]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            lines = iter(server.stderr.readline, "")
            port = next(found[1] for found in map(READY.search, lines) if found)
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/predict",
                json.dumps({"inputs": "the cat"}).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request) as response:
                return {one["label"] for one in json.load(response)}
        finally:
            server.terminate()
            server.stderr.read()
