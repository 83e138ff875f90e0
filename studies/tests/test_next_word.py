"""`bertkit next-word` trains a recurrent language model, and predicts words with it."""

import json
import shutil

import pytest
from studies.tests.baselines.conftest import shards
from tests.closeness import close
from tests.unit.inference.small import save_small
from tests.unit.inference.small_causal import save_causal

from bertkit.cli.main import main
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel

__all__ = ["shards"]
TRAINING = (
    "--steps 4 --embedding-size 6 --hidden-size 8 --batch-size 4 --max-length 16"
    " --eval-examples 4 --device cpu --precision fp32"
)


def train(run, shards):
    words = f"next-word --data {shards} --output {run} {TRAINING} --json"
    return main(words.split())


@pytest.fixture(scope="module")
def run(shards, tmp_path_factory):
    run = tmp_path_factory.mktemp("next") / "run"
    assert train(run, shards) == 0
    return run


def test_words_have_the_probabilities_of_the_model(run, capsys):
    assert main(["next-word", str(run), "ab c", "", "--top-k", "100", "--json"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["text"] for result in results] == ["ab c", ""]
    checkpoint = max((run / "checkpoints").iterdir())
    tokenizer = Tokenizer.load(checkpoint)
    net = RecurrentLanguageModel.from_pretrained(checkpoint)
    for result, ids in zip(results, (["[CLS]", "a", "##b", "c"], ["[CLS]"]), strict=True):
        batch = PackedBatch.from_single([[tokenizer.vocabulary.index(token) for token in ids]])
        expected = net.next_scores(batch)[-1].softmax(dim=0)
        found = {word["token"]: word["probability"] for word in result["words"]}
        assert len(found) == 37  # letters, digits and the full stop
        assert list(found.values()) == sorted(found.values(), reverse=True)
        for token, probability in found.items():
            assert probability == close(
                expected[tokenizer.vocabulary.index(token)].item(), "float32"
            )


def test_a_left_to_right_bert_predicts_too(tmp_path, capsys):
    save_causal(tmp_path / "gpt")
    assert main(["next-word", str(tmp_path / "gpt"), "the cat", "--top-k", "3", "--json"]) == 0
    words = json.loads(capsys.readouterr().out)["words"]
    tokenizer = Tokenizer.load(tmp_path / "gpt")
    net = BertLMHeadModel.from_pretrained(tmp_path / "gpt")
    batch = PackedBatch.from_single([tokenizer.encode("the cat").ids[:-1]])
    expected = net.next_scores(batch)[-1].softmax(dim=0)
    for word in words:
        wanted = expected[tokenizer.vocabulary.index(word["token"])].item()
        assert word["probability"] == close(wanted, "float32")
    save_small(tmp_path / "masked")
    assert main(["next-word", str(tmp_path / "masked"), "the cat"]) == 2
    assert "left-to-right" in capsys.readouterr().err


def test_the_words_are_listed_below_the_text(run, capsys):
    assert main(["next-word", str(run), "a b", "--top-k", "2"]) == 0
    text, *words = capsys.readouterr().out.splitlines()
    assert text == "a b"
    assert len(words) == 2
    assert all(word.split()[1] == "%" for word in words)


def test_the_same_command_resumes_bit_for_bit(run, shards, tmp_path, capsys):
    again = tmp_path / "run"
    shutil.copytree(run, again)
    shutil.rmtree(max((again / "checkpoints").iterdir()))
    for _ in range(2):  # resumed, then finished
        assert train(again, shards) == 0
        assert json.loads(capsys.readouterr().out)["num_steps"] == 4
    weights = [max((one / "checkpoints").iterdir()) / "model.safetensors" for one in (run, again)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the folder of a run"),
        (["{run}", "a", "--cell", "gru"], "training needs --data and --output, and takes no texts"),
        (["--data", "{shards}"], "training needs --data and --output"),
        (["{run}", "a", "--top-k", "0"], "--top-k"),
        (["--data", "{shards}", "--output", "{run}", "--steps", "9"], "--steps 4 → 9"),
        (["{run}/none", "a"], "doesn't exist"),
        (["--data", "{shards}", "--output", "{shards}/run"], "lies in the input"),
    ],
)
def test_a_mistake_is_a_line(run, shards, capsys, words, message):
    capsys.readouterr()
    assert main(["next-word", *(word.format(run=run, shards=shards) for word in words)]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
