"""What a model is for is found in its files and its heads."""

from pathlib import Path

import pytest
from tests.unit.serving.small_models import save_models

from bertkit.checkpoints.bundled import find_bundled
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.opening import load_pipelines
from bertkit.models.open_model import OpenModel

TASKS = {
    "chooser": ["choose"],
    "entities": ["tag"],
    "reader": ["answer"],
    "reranker": ["regress"],
    "sentiment": ["classify"],
    "single": ["classify"],
    "translator": ["translate"],
    "words": ["fill-mask", "score", "next-sentence"],
    "writer": ["generate", "score"],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))


def test_a_model_does_what_its_files_and_heads_allow(folders):
    found = {name: load(path) for name, path in folders.items()}
    assert {name: list(pipelines) for name, pipelines in found.items()} == TASKS
    for pipelines in found.values():
        for pipeline in pipelines.values():
            pipeline.warm_up()
    assert list(load(find_bundled("vectors"))) == ["embed"]


def load(path, revision=None, **choices):
    settings = EmbedderSettings(device="cpu", revision=revision, **choices)
    return load_pipelines(OpenModel(Path(path), revision), settings)


def test_a_revision_is_that_of_the_model_that_is_open():
    assert list(load(find_bundled("vectors"), revision="main")) == ["embed"]


def test_pipelines_share_the_weights(folders):
    engines = [one.engine for one in load(folders["words"], precision="fp32").values()]
    assert all(one is engines[0] for one in engines)
    pipelines = load(folders["writer"], precision="fp32")
    assert pipelines["score"].engine.model is pipelines["generate"].loaded.model


def test_a_scorer_of_a_generator_in_bf16_has_a_head_in_fp32(folders):
    pipelines = load(folders["writer"], precision="bf16")
    assert pipelines["score"].loaded is not pipelines["generate"].loaded
    pipelines["score"].warm_up()
