"""Precision by flag: what auto takes, integers, and what doesn't fit together."""

import json

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.inference.small import save_small

from bertkit.cli.main import main
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings

TEXTS = ["the cat saw a hat .", "a dog", "the dogs lost the hat - the cats saw a dog"]


def test_devices_are_listed(capsys):
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cpu")
    assert sum("--precision auto for" in line for line in lines) >= 1
    assert main(["devices", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[0])
    assert report["device"] == "cpu"
    assert report["operations_per_second"]["fp32"] > 0


def test_each_text_alone_is_bit_equal_in_int8(tmp_path):
    save_small(tmp_path / "model")
    settings = EmbedderSettings(precision="int8", deterministic=True)
    embedder = Embedder.load(tmp_path / "model", settings)
    together = embedder(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert np.array_equal(embedder([text])[0], vector)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_blanks_are_filled_in_any_precision(tmp_path, capsys, precision):
    save_small(tmp_path / "model")
    found = []
    for one in ("fp32", precision):
        command = ["fill-mask", "--model", str(tmp_path / "model"), "the [MASK] saw", "--json"]
        assert main([*command, "--precision", one]) == 0
        (blank,) = json.loads(capsys.readouterr().out)["blanks"]
        found.append({word["token"]: word["probability"] for word in blank})
    common = found[0].keys() & found[1].keys()
    assert len(common) >= 4
    assert all(
        found[0][word] == close(found[1][word], within=0.2 * found[1][word]) for word in common
    )
    assert found[0] != found[1]
