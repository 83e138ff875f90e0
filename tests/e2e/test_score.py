"""`bertkit score` of texts, minimal pairs and held-out text, as a user runs it."""

import gzip
import json
from pathlib import Path

import pytest
from tests.closeness import close
from tests.e2e.small import pretrain_words, run
from tests.unit.inference.small import save_small
from tests.unit.inference.small_causal import save_causal

from bertkit.inference.text_scorer import TextScorer
from bertkit.recipes.pretrain.run import Pretraining
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.job import Machine

PAIRS = [
    {"sentence_good": "the cat saw", "sentence_bad": "saw the cat", "linguistics_term": "order"},
    {"sentence_good": "a dog saw", "sentence_bad": "a dog saw", "linguistics_term": "order"},
    {"sentence_good": "the hat", "sentence_bad": "the hats", "linguistics_term": "number"},
]


@pytest.fixture(params=[save_causal, save_small])
def model(request, tmp_path):
    request.param(tmp_path / "model")
    return tmp_path / "model"


def write_pairs(path: Path, pairs: list[dict[str, str]]) -> Path:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(pair) + "\n" for pair in pairs)
    return path


def test_a_line_for_each_text_and_one_for_all(model, capsys):
    texts = ("the cat saw a dog .", "zebra")
    out, _ = run(capsys, "score", "--model", model, *texts)
    first, second, whole = (line.split(maxsplit=3) for line in out.splitlines())
    assert [first[3], second[3]] == list(texts)
    found = TextScorer.load(model)(list(texts))
    num_tokens = sum(one.num_tokens for one in found)
    assert whole[3] == f"all 2 texts, {num_tokens} tokens"
    assert float(first[0]) == close(found[0].log_probability, within=0.01)
    assert float(first[2].replace(",", "")) == close(found[0].perplexity, within=0.06)
    out, _ = run(capsys, "score", "--model", model, *texts, "--json")
    *each, all_texts = map(json.loads, out.splitlines())
    assert [one["text"] for one in each] == list(texts)
    total = sum(one["log_probability"] for one in each)
    assert all_texts["log_probability"] == close(total, "float32")
    assert all_texts["num_tokens"] == num_tokens


def test_minimal_pairs_are_counted_by_phenomenon(model, tmp_path, capsys):
    path = write_pairs(tmp_path / "pairs.jsonl.gz", PAIRS)
    score = TextScorer.load(model)
    is_right = [
        score(pair["sentence_good"]).log_probability > score(pair["sentence_bad"]).log_probability
        for pair in PAIRS
    ]
    assert not is_right[1]  # equal sentences
    out, _ = run(capsys, "score", "--model", model, "--minimal-pairs", path)
    rows = {line.split()[0]: line.split() for line in out.splitlines()}
    assert list(rows) == ["number", "order", "all"]
    assert rows["all"][1] == f"{100 * sum(is_right) / 3:.1f}"
    assert rows["order"][1] == f"{100 * sum(is_right[:2]) / 2:.1f}"
    out, _ = run(capsys, "score", "--model", model, "--minimal-pairs", path, "--json")
    found = json.loads(out)
    assert found["whole"]["accuracy"] == close(sum(is_right) / 3)
    assert found["phenomena"]["number"]["num_pairs"] == 1
    low, high = found["phenomena"]["number"]["interval"]
    assert high - low > 0.7  # of one pair
    assert found["paradigms"] == {}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([{"sentence_good": "the cat", "label": "1"}], "has no column sentence_bad"),
        ([{"sentence_good": "the cat", "sentence_bad": " "}], "sentence_bad isn't a text"),
        ([{"sentence_good": "the cat", "sentence_bad": 5}], "sentence_bad isn't a text"),
    ],
)
def test_what_are_no_pairs_is_refused(model, tmp_path, capsys, pairs, message):
    path = write_pairs(tmp_path / "pairs.jsonl.gz", pairs)
    _, err = run(capsys, "score", "--model", model, "--minimal-pairs", path, code=2)
    assert message in err
    assert "computing on" not in err  # which is said when the model is loaded


@pytest.mark.parametrize("objective", ["bert", "mlm", "causal"])
def test_held_out_text_is_evaluated_as_in_the_run(workshop, tmp_path, capsys, objective):
    output = tmp_path / "run"
    run(capsys, *pretrain_words(workshop, output, "--objective", objective, steps=4))
    out, _ = run(capsys, "score", "--model", output, "--data", workshop / "shards", "--json")
    found = json.loads(out)
    assert found["objective"] == objective
    assert found["max_length"] == 32
    assert found["num_predicted"] > 0
    settings = PretrainSettings(
        model=str(output), objective=objective, max_length=32, eval_examples=100_000, steps=4
    )
    recipe = Pretraining(workshop / "shards", settings)
    recipe.open_data()
    expected = recipe.open(None, Machine.choose(settings)).evaluate()
    assert found["metrics"] == close(expected, "float32")
    out, _ = run(capsys, "score", "--model", output, "--data", workshop / "shards")
    assert "bits per character" in out


def test_shards_of_another_tokenizer_are_refused(workshop, tmp_path, capsys):
    save_small(tmp_path / "model")
    words = ["score", "--model", tmp_path / "model", "--data", workshop / "shards"]
    _, err = run(capsys, *words, code=2)
    assert "another tokenizer" in err
