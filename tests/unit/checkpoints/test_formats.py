"""The name of a model in titles, messages and records."""

from pathlib import Path

import pytest

from bertkit.checkpoints.formats import name_model
from bertkit.checkpoints.hub import PACKAGE


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"/lib/site-packages/{PACKAGE}/vectors", "bertkit-minilm-vectors"),
        (Path("/lib") / PACKAGE / "words", "bertkit-minilm-words"),
        ("models/vectors/", "vectors"),
        ("/demo/run", "demo/run"),
        ("run", "run"),
        ("/hub/models--owner--a-model/snapshots/0a1b", "owner/a-model"),
        ("/hub/models--bert--base/snapshots/0a1b/", "bert/base"),
        ("snapshots/0a1b", "0a1b"),
    ],
)
def test_a_model_is_named_without_folders(path, name):
    assert name_model(path) == name
