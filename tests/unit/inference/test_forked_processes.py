"""Models that were loaded before a fork work after it; those that were used before say so."""

import json
import os
import subprocess
import sys

import pytest
from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_classifier

# Large enough that torch would start threads to check, cast or join weights.
SIZES = {"vocab_size": 6_000, "hidden_size": 16}

PROGRAM = """
import json, multiprocessing, sys
import torch
from bertkit import Classifier, Embedder, EmbedderSettings, FillMask

TEXTS = ["the cat saw a hat ."] * 40
MASKED = ["the [MASK] saw a hat .", "a [MASK]"] * 20
folder, classifier, engine, precision = sys.argv[1:]
torch.set_num_threads(2)
options = {"engine": engine, "precision": precision}
objects = [
    Embedder.load(folder, EmbedderSettings(**options)),
    FillMask.load(folder, **options),
    Classifier.load(classifier, **options),
]

def use():
    embedder, fill, classify = objects
    vectors = embedder(TEXTS)[0].tolist() + embedder(TEXTS[0]).tolist()
    words = [str(blank) for filled in fill(MASKED) for blank in filled.blanks]
    return vectors, words, [str(each) for each in classify(TEXTS)]

def use_alone():
    torch.set_num_threads(1)
    vectors, words, labels = use()
    objects.clear()  # the sessions of the parent can't be ended here
    return len(vectors), len(words), len(labels)

def fail():
    try:
        use()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def fork(function):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(function).get(timeout=30)

has_runtime = "openvino" in sys.modules
child, parent = fork(use), use()
assert child == parent, (child, parent)
sizes = [len(each) for each in parent]
print(json.dumps([has_runtime, fork(fail), sizes == list(fork(use_alone))]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("engine", "precision"), [("torch", "fp32"), ("torch", "bf16"), ("openvino", "fp32")]
)
def test_a_forked_process_computes_or_says_why_not(tmp_path, engine, precision):
    save_small(tmp_path / "small", **SIZES)
    classifier = save_classifier(tmp_path / "classifier", **SIZES)
    words = [str(tmp_path / "small"), classifier, engine, precision]
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=240
    )
    assert child.returncode == 0, child.stderr
    has_runtime, failure, has_all = json.loads(child.stdout)
    assert not has_runtime  # importing it starts a thread
    if engine == "openvino":  # it compiles models again
        assert failure is None
    else:
        assert failure.startswith("ForkError: this process was forked after its parent had used")
    assert has_all
