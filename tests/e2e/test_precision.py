"""Precision by flag: what auto takes, integers, and what doesn't fit together."""

import json

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_classifier

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


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_vectors_in_a_reduced_precision_are_near(tmp_path, precision):
    save_small(tmp_path / "model")
    vectors = {
        one: Embedder.load(tmp_path / "model", EmbedderSettings(precision=one))(TEXTS)
        for one in ("fp32", precision)
    }
    cosines = (vectors["fp32"] * vectors[precision]).sum(axis=1) / np.prod(
        [np.linalg.norm(one, axis=1) for one in vectors.values()], axis=0
    )
    assert cosines.min() > 0.99
    assert not np.array_equal(*vectors.values())


def test_each_text_alone_is_bit_equal_in_int8(tmp_path):
    save_small(tmp_path / "model")
    settings = EmbedderSettings(precision="int8", deterministic=True)
    embedder = Embedder.load(tmp_path / "model", settings)
    together = embedder(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert np.array_equal(embedder([text])[0], vector)


def test_an_index_keeps_its_precision(tmp_path, capsys):
    save_small(tmp_path / "model")
    corpus = tmp_path / "texts.txt"
    corpus.write_text("\n".join(TEXTS) + "\n")
    search = ["search", str(tmp_path / "model"), "--corpus", str(corpus), "a dog"]
    index = ["--index-folder", str(tmp_path / "index")]
    assert main([*search, *index, "--precision", "int8"]) == 0
    capsys.readouterr()
    assert main([*search, *index, "--precision", "fp32"]) == 2
    error = capsys.readouterr().err
    assert "precision" in error
    assert "--rebuild" in error


def test_labels_are_predicted_in_any_precision(tmp_path, capsys):
    model = save_classifier(tmp_path / "model")
    labels = []
    for precision in ("auto", "fp32", "bf16", "int8"):
        assert main(["classify", model, *TEXTS, "--precision", precision, "--json"]) == 0
        lines = capsys.readouterr().out.splitlines()
        labels.append([json.loads(line)["label"] for line in lines])
    assert labels[0] == labels[1]
    assert [len(one) for one in labels] == [len(TEXTS)] * 4


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_blanks_are_filled_in_any_precision(tmp_path, capsys, precision):
    save_small(tmp_path / "model")
    found = []
    for one in ("fp32", precision):
        command = ["fill-mask", str(tmp_path / "model"), "the [MASK] saw", "--json"]
        assert main([*command, "--precision", one]) == 0
        (blank,) = json.loads(capsys.readouterr().out)["blanks"]
        found.append({word["token"]: word["probability"] for word in blank})
    common = found[0].keys() & found[1].keys()
    assert len(common) >= 4
    assert all(
        found[0][word] == close(found[1][word], within=0.2 * found[1][word]) for word in common
    )
    assert found[0] != found[1]


def test_integers_need_their_engine(tmp_path, capsys):
    save_small(tmp_path / "model")
    command = ["fill-mask", str(tmp_path / "model"), "the [MASK]", "--precision", "int8"]
    assert main(command) == 0
    assert main([*command, "--engine", "torch"]) == 2
    assert "int8 is for bidirectional models" in capsys.readouterr().err
