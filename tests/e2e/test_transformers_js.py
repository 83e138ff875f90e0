"""The JavaScript of the guide on exports runs in Node, and agrees with bertkit.

It needs the package `@huggingface/transformers` in `node_modules` of the repository, or of a folder
that the variable NODE_PATH names.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.closeness import assert_close
from tests.e2e.documentation import ROOT, read_blocks
from tests.scripts import find_node
from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_classifier

from bertkit.checkpoints.sentence_modules import Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.predictor import Classifier
from bertkit.jobs.export import export
from bertkit.jobs.settings import ExportSettings

PACKAGE = "@huggingface/transformers"
TEXTS = ("the cat saw a hat .", "a dog")


def find_modules() -> Path | None:
    """The folder of Node's packages that has transformers.js."""
    named = filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep))
    places = [ROOT / "node_modules", *map(Path, named)]
    return next((place for place in places if (place / PACKAGE).is_dir()), None)


def run_script(folder: Path, code: str) -> list:
    """What the script writes to the console, as JSON a line."""
    node, modules = find_node(), find_modules()
    if node is None or modules is None:
        pytest.skip(f"needs Node and its package {PACKAGE}: `npm install {PACKAGE}`")
    (folder / "node_modules").symlink_to(modules)
    code = code.replace("console.log(", "tell(")
    code += "\nfunction tell(value) { console.log(JSON.stringify(value)); }\n"
    (folder / "page.mjs").write_text(code)
    run = subprocess.run([node, "page.mjs"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def read_page() -> str:
    (code,) = [one.code for one in read_blocks("docs/guide/export.md") if one.language == "js"]
    texts = json.dumps(TEXTS)
    return code.replace('"A warm and funny film."', json.dumps(TEXTS[0])).replace(
        '["A text.", "Another one"]', texts
    )


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_page_gives_what_bertkit_gives(tmp_path, precision):
    save_small(tmp_path / "minilm")
    modules = (Pooling(dimension=8, modes=("mean",)), Normalize())
    write_sentence_model(tmp_path / "minilm", SentenceModel(modules, max_seq_length=20))
    classifier = save_classifier(tmp_path / "sentiment")
    settings = ExportSettings(precision=precision)
    export(tmp_path / "minilm", tmp_path / "minilm-onnx", settings)
    export(classifier, tmp_path / "sentiment-onnx", settings)
    code = read_page()
    if precision == "int8":
        code = code.replace('dtype: "fp32"', 'dtype: "q8"')
    classes, vectors = run_script(tmp_path, code)
    found = Classifier.load(classifier, precision="fp32")(TEXTS[0]).probabilities
    near = {"fp32": None, "int8": 0.05}[precision]
    assert_close({one["label"]: one["score"] for one in classes}, found, "float32", within=near)
    embed = Embedder.load(tmp_path / "minilm", EmbedderSettings(precision="fp32"))
    assert_close(vectors, embed(list(TEXTS)).tolist(), "float32", within=near)
