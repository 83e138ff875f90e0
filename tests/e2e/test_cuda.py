"""Every command that computes, on a GPU. Runs only where there is one."""

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.e2e.small import pretrain_words
from tests.unit.recipes.finetune.small import save_model, write_tables
from tests.wings import needs

from bertkit.cli.main import main

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


def run(words: str) -> None:
    assert main([*words.split(), "--device", "cuda"]) == 0


@pytest.fixture(scope="module")
def folder(workshop, tmp_path_factory):
    """A run in bf16 that was gone on with once, and texts."""
    folder = tmp_path_factory.mktemp("cuda")
    for steps in (4, 6):
        words = " ".join(pretrain_words(workshop, folder / "run", steps=steps))
        run(words.replace(" --device cpu", ""))
    texts = ["The cat saw the red house.", "A dog found a small boat. It lost his hat.", "The"]
    (folder / "texts.txt").write_text("\n".join(texts * 20) + "\n", encoding="utf-8")
    return folder


def test_vectors_are_those_of_the_cpu(folder):
    texts, vectors = folder / "texts.txt", {}
    for device, precision in (("cpu", "fp32"), ("cuda", "fp32"), ("cuda", "bf16")):
        output = folder / f"{device}-{precision}.npy"
        words = f"embed {folder}/run {texts} --output {output} --precision {precision}"
        assert main([*words.split(), "--device", device]) == 0
        vectors[device, precision] = np.load(output)
    expected = vectors.pop(("cpu", "fp32"))
    for (_, precision), found in vectors.items():
        tolerance = {"fp32": 1e-4, "bf16": 0.05}[precision] * np.abs(expected).max()
        assert_close(found, expected, within=tolerance)


@pytest.mark.parametrize(
    "words",
    [
        "fill-mask --model {run} [MASK]",
        "fill-mask --model {run} [MASK] --targets the",
        "similarity {run} the a",
        "search {run} dog --corpus {texts}",
        "features {run} {texts} --output {folder}/features.jsonl",
        pytest.param(
            "view dog --model {run} --output {folder}/view.html", marks=needs("interpret")
        ),
    ],
)
def test_a_pretrained_model_answers(words, folder):
    places = {"run": folder / "run", "folder": folder, "texts": folder / "texts.txt"}
    run(words.format(**places))


@pytest.mark.parametrize("head", ["", " --features last"])
def test_a_classifier_is_trained_and_judged(head, tmp_path):
    save_model(tmp_path / "model")
    write_tables(tmp_path)
    run(
        f"finetune classify --model {tmp_path}/model --train {tmp_path}/train.csv"
        f" --dev {tmp_path}/dev.csv --output {tmp_path}/classifier --max-length 12 --epochs 1{head}"
    )
    run(f"evaluate {tmp_path}/classifier {tmp_path}/dev.csv")
