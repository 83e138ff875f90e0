"""The name of a model in titles, messages and records."""

from pathlib import Path

import pytest

from bertkit.checkpoints.bundled import PACKAGE, describe_name
from bertkit.checkpoints.formats import describe_model, name_model


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


def test_only_the_bundled_weights_are_shown_under_their_own_title(tmp_path):
    title = "all-MiniLM-L6-v2 with heads for words (comes with bertkit)"
    assert describe_model(tmp_path / PACKAGE / "words") == title
    assert describe_model(f"/lib/{PACKAGE}/words/") == title
    assert describe_name("bertkit-minilm-words") == title
    for folder in (tmp_path / "bertkit-minilm-words", "bertkit-minilm-words"):
        assert describe_model(folder) == "bertkit-minilm-words"
