"""`bertkit view` of models that write a text."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.e2e.interpret.test_view import TEXT, in_an_empty_folder, list_files, run  # noqa: F401 - a fixture
from tests.unit.decoders.small_encoder_decoder import save_encoder_decoder


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """An encoder-decoder of two layers that read, and three that write."""
    folder = tmp_path_factory.mktemp("writer") / "de-en"
    save_encoder_decoder(folder)
    return folder


def test_an_encoder_decoder_is_seen_with_what_it_writes(writer, capsys):
    out, err = run(capsys, "--model", writer, "the cat saw a hat", "--views", "alignment,heads")
    assert re.match(r"After “.+” the model attends to “.+” with \d+\.\d % in head ", out)
    assert err.startswith("attention.html: ")
    assert " 3 layers of 2 heads, 0." in err
    page = Path("attention.html").read_text("utf-8")
    assert "from target to source" in page
    given = ["--model", writer, "the cat saw a hat", "a dog lost ."]
    run(capsys, *given, "--overwrite", "--attention", "encoder", "--layer", 2)
    assert "a dog lost ." in Path("attention.html").read_text("utf-8")


def test_an_alignment_is_a_figure_of_what_is_chosen_or_of_all(writer, capsys):
    words = ["--model", writer, "the cat saw a hat", "a dog lost ."]
    _, err = run(capsys, *words, "--output", "all.svg")
    assert err.startswith("all.svg: cross-attention, all layers, mean of all heads, ")
    svg = ET.parse("all.svg").getroot()
    namespace = "{http://www.w3.org/2000/svg}"
    texts = {text.text for text in svg.iter(f"{namespace}text")}
    assert texts >= {"source", "target", "saw", "lost", "[SEP]"}
    _, err = run(capsys, *words, "--output", "one.svg", "--layer", 3, "--head", 2, "--token", "dog")
    assert err.startswith("one.svg: cross-attention, layer 3, head 2, ")
    assert "query" in Path("one.svg").read_text("utf-8")
    _, err = run(capsys, *words, "--output", "telling.svg", "--attention", "encoder")
    assert re.match(r"telling.svg: encoder-attention, layer [12], head [12], ", err)
    assert list_files() == ["all.svg", "one.svg", "telling.svg"]


def test_numbers_of_cross_attention_are_printed(writer, capsys):
    out, _ = run(capsys, "--model", writer, "the cat saw", "a dog .", "--json", "--token", "dog")
    numbers = json.loads(out)
    assert numbers["attention"] == "cross"
    assert numbers["others"] == ["[CLS]", "the", "cat", "saw", "[SEP]"]
    assert [len(head["weights"]) for head in numbers["heads"]] == [5] * 6
    out, _ = run(
        capsys, "--model", writer, "the cat saw", "a dog .", "--json", "--attention", "encoder"
    )
    assert json.loads(out)["num_layers"] == 2
