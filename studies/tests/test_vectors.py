"""`bertkit study skip-gram` and `skip-thought` train vectors, and compare words and sentences."""

import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from studies.tests.baselines.conftest import shards
from tests.closeness import close

from bertkit.cli.main import main
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_studies.recurrent.skip_thought import SkipThought
from bertkit_studies.recurrent.word_vectors import StaticVectors

__all__ = ["shards"]
SKIP_GRAM = "--vector-size 8 --epochs 2 --min-count 3"
SKIP_THOUGHT = (
    "--steps 4 --embedding-size 6 --hidden-size 8 --batch-size 4 --max-length 16"
    " --eval-examples 4 --device cpu --precision fp32"
)
SENTENCES = ["a b c", "d e", "a b c", "f g h a"]


@pytest.fixture(scope="module")
def word_vectors(shards, tmp_path_factory):
    pytest.importorskip("gensim")
    folder = tmp_path_factory.mktemp("words") / "vectors"
    assert main(f"study skip-gram --data {shards} --output {folder} {SKIP_GRAM}".split()) == 0
    return folder


@pytest.fixture(scope="module")
def run(shards, tmp_path_factory):
    run = tmp_path_factory.mktemp("sentences") / "run"
    words = f"study skip-thought --data {shards} --output {run} {SKIP_THOUGHT} --json"
    assert main(words.split()) == 0
    return run


@pytest.fixture
def sentences(tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(SENTENCES))
    return path


@pytest.fixture
def units(word_vectors):
    """The vectors of whole words that have one, of length 1, by word."""
    table = StaticVectors.from_pretrained(word_vectors).embeddings.weight.numpy()
    vocabulary = Tokenizer.load(word_vectors).vocabulary
    return {
        word: row / np.linalg.norm(row)
        for word, row in zip(vocabulary, table, strict=True)
        if row.any() and not word.startswith("##")
    }


def list_neighbors(capsys, *words):
    capsys.readouterr()
    assert main([*map(str, words), "--top-k", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["neighbors"]
    return {each["token"]: each["similarity"] for each in found}


def rank(units, target, left_out):
    cosines = {word: row @ target / np.linalg.norm(target) for word, row in units.items()}
    kept = sorted(cosines.keys() - left_out, key=cosines.__getitem__, reverse=True)
    return {word: close(float(cosines[word]), "float32") for word in kept}


def test_nearest_compares_skip_gram_vectors(word_vectors, units, capsys):
    word = next(iter(units))
    found = list_neighbors(capsys, "nearest", "--model", word_vectors, word)
    assert found == rank(units, units[word], {word})
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert 5 < len(units) < len(Tokenizer.load(word_vectors).vocabulary)  # rare ones have none


def test_analogy_adds_and_subtracts_skip_gram_vectors(word_vectors, units, capsys):
    words = one, other, minus = list(units)[:3]
    found = list_neighbors(capsys, "nearest", "--model", word_vectors, f"{one} + {other} - {minus}")
    assert found == rank(units, units[one] + units[other] - units[minus], set(words))


def test_nearest_compares_the_embeddings_of_recurrent_networks(run, capsys):
    table = SkipThought.from_pretrained(run).embeddings.weight.detach().numpy()
    vocabulary = Tokenizer.load(max((run / "checkpoints").iterdir())).vocabulary
    a, b = (table[vocabulary.index(word)] for word in "ab")
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert list_neighbors(capsys, "nearest", "--model", run, "a")["b"] == close(cosine, "float32")


def test_a_word_to_try_has_a_vector(shards, word_vectors, capsys):
    command = f"study skip-gram --data {shards} --output {word_vectors} {SKIP_GRAM}"
    assert main(command.split()) == 0
    counted, trial = capsys.readouterr().out.splitlines()
    table = StaticVectors.from_pretrained(word_vectors).embeddings.weight
    assert counted.startswith(f"{int(table.any(dim=1).sum())} of the {len(table)} entries")
    assert trial.startswith("Try: bertkit nearest ")
    assert trial.endswith(f" --model {word_vectors}")
    assert main([*command.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["vector_size"] == 8


def test_sentences_are_ranked_by_the_cosine_of_their_vectors(run, sentences, capsys):
    words = ["study", "skip-thought", str(run), "a b c", "--file", str(sentences)]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    net = SkipThought.from_pretrained(run)
    tokenizer = Tokenizer.load(max((run / "checkpoints").iterdir()))
    ids = [
        [tokenizer.vocabulary.index(token) for token in ("[CLS]", *text.split(), "[SEP]")]
        for text in ("a b c", "d e", "f g h a")
    ]
    vectors = net.encode(PackedBatch.from_single(ids)).detach().numpy()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = {"d e": vectors[0] @ vectors[1], "f g h a": vectors[0] @ vectors[2]}
    shown = {each["sentence"]: each["similarity"] for each in found["sentences"]}
    assert shown == {line: close(float(one), "float32") for line, one in cosines.items()}
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert main([*words, "--top-k", "1"]) == 0
    text, nearest = capsys.readouterr().out.splitlines()
    assert text == "a b c"
    assert nearest.split()[1:] == next(iter(shown)).split()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("skip-thought", "name the folder of a run, texts, and --file"),
        ("skip-thought {run} a", "name the folder of a run, texts, and --file"),
        ("skip-thought {run} a --file {empty}", "has no text"),
        ("skip-thought {run} a --hidden-size 9 --file {empty}", "training needs --data"),
        ("skip-thought --data {shards}", "training needs --data and --output"),
        ("skip-thought --data {shards} --output {shards}/run", "lies in the input"),
        ("skip-gram --data {shards} --output {shards}/vectors", "lies in the input"),
        ("skip-gram --data {shards} --output {run}", "isn't word vectors"),
    ],
)
def test_a_mistake_is_a_line(run, shards, capsys, tmp_path, words, message):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    capsys.readouterr()
    command = words.format(run=run, shards=shards, empty=empty)
    assert main(["study", *command.split()]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_a_network_without_word_vectors_is_refused(run, shards, tmp_path, capsys):
    folder = tmp_path / "copy"
    shutil.copytree(max((run / "checkpoints").iterdir()), folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({"other": tensors["embeddings.weight"]}, folder / "model.safetensors")
    for name in folder.glob("*manifest*"):
        name.unlink()
    assert main(["nearest", "--model", str(folder), "a"]) == 2
    assert "has no vector for each of the 79 entries" in capsys.readouterr().err
