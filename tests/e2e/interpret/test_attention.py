"""`bertkit attention` as a user runs it."""

import json
import tomllib

from tests.closeness import close
from tests.unit.inference.small import save_small

from bertkit.cli.main import main

TEXT = "the cat saw a dog ."


def run(capsys, *words, code=0):
    capsys.readouterr()
    assert main(["attention", *map(str, words)]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err.splitlines()[-1]


def test_without_arguments_an_example_is_computed(capsys):
    out = run(capsys)
    assert "W_q             Q = X · W_q\n  0  0  2  0      cat  0  2  2  0\n" in out
    assert "  it     6    4    0      it     3    2    0      it   70.5  25.9   3.5\n" in out
    assert out.endswith(
        "Y = softmax · V\n"
        + "".join(
            (
                "  cat  5.777  4.223  4.223  1.554\n",
                "  mat  5.777  1.554  4.223  4.223\n",
                "  it   9.649  7.054  0.351  2.595\n",
            )
        )
    )


def test_the_mask_is_a_triangle(capsys):
    out = run(capsys, "--causal")
    assert "    cat    1   -∞   -∞      cat  100.0      ·      ·\n" in out
    assert "    mat    0    1   -∞      mat   26.9   73.1      ·\n" in out


def test_matrices_are_read_from_toml_or_json(capsys, tmp_path):
    file = tmp_path / "matrices.toml"
    file.write_text("x = [[-1, 0], [0, 2]]\nquery_weights = [[1], [1]]\nkey_weights = [[1], [0]]\n")
    shown = run(capsys, "--matrices", file)
    assert "K = X · W_k\n  1      1  -1\n  0      2   0\n" in shown
    assert "\nV = X\n" in shown
    same = file.with_suffix(".json")
    same.write_text(json.dumps(tomllib.loads(file.read_text())))
    assert run(capsys, "--matrices", same) == shown


def test_a_text_takes_the_scale_of_a_file_and_no_matrices(model, capsys, tmp_path):
    file = tmp_path / "matrices.toml"
    file.write_text("scale = false\n")
    words = [TEXT, "--model", model, "--layer", -1, "--head", 1, "--matrices", file, "--json"]
    numbers = json.loads(run(capsys, *words))
    assert numbers["scores"] == numbers["products"]
    file.write_text("x = [[1]]\n")
    assert "matrices.toml has x, and a text has its own" in run(capsys, *words, code=2)


def test_a_token_of_a_text_is_told_with_its_largest_weights(model, capsys):
    words = ["--model", model, TEXT, "--layer", 2, "--head", 1, "--token", "cat"]
    out = run(capsys, *words, "--top-k", 3).splitlines()
    assert out[0] == "small, layer 2, head 1: 8 tokens, 4 features each"
    assert out[1].split() == ["cat", "q", "·", "k", "/", "√4", "softmax"]
    assert out[5].startswith("3 of 8 weights, together ")
    assert len(out) == 7
    numbers = json.loads(run(capsys, *words, "--json"))
    largest = max(numbers["weights"])
    assert out[2].endswith(f"{100 * largest:.1f} %")
    assert numbers["tokens"][numbers["weights"].index(largest)] == out[2].split()[1]
    for product, score in zip(numbers["products"], numbers["scores"], strict=True):
        assert score == close(product / 2, "float32")


def test_a_whole_text_is_a_table_of_weights(model, capsys):
    out = run(
        capsys, "--model", model, "the cat saw", "--layer", 1, "--head", 1, "--causal"
    ).splitlines()
    assert out[0] == "small, layer 1, head 1, left to right: 5 tokens, 4 features each"
    assert out[3].split() == ["1", "[CLS]", "100.0", "·", "·", "·", "·"]
    assert "·" not in out[7]


def test_a_text_too_long_for_a_table_is_told(tmp_path, capsys):
    save_small(tmp_path / "small", max_position_embeddings=64)
    line = run(capsys, "--model", tmp_path / "small", "the cat " * 15, code=2)
    assert line.startswith("bertkit: a table has room for 24 tokens, and the text has 32; choose")
