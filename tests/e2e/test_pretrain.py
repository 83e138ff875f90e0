"""Shards → a run → a filled blank, through the command line."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close, close
from tests.e2e.small import pretrain_words
from tests.logs import rows_without_clock

from bertkit import BertForPreTraining, BertModel, Tokenizer
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.cli.main import main
from bertkit.data.shards import ShardSet
from bertkit.recipes.pretrain.job import held_out_batches
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.bert import BertObjective
from bertkit.training import budget as training_budget
from bertkit.training import lifecycle, loop
from bertkit.training.budget import StepPace
from bertkit.training.job import Scores


def rows(run: Path) -> list[dict]:
    return rows_without_clock(run / "log.jsonl")


def tensors(run: Path, name: str) -> bytes:
    return (list_checkpoints(run)[-1] / name).read_bytes()


def test_it_learns_more_than_the_most_frequent_word(workshop, trained):
    evaluations = [row for row in rows(trained) if row["event"] == "eval"]
    assert evaluations[-1]["mlm_loss"] < 0.75 * evaluations[0]["mlm_loss"]
    counts = ShardSet.open(workshop / "shards").token_counts
    assert evaluations[-1]["mlm_accuracy"] > counts.max() / counts.sum() + 0.03
    assert evaluations[-1]["mlm_perplexity"] == close(
        2.718281828 ** evaluations[-1]["mlm_loss"], "float32"
    )
    assert 0 < evaluations[-1]["mlm_bits_per_character"] < evaluations[0]["mlm_loss"]


def test_fill_mask_speaks_in_percentages(trained, capsys):
    words = ["fill-mask", "The cat saw the red [MASK].", "--model", str(trained), "--top-k", "2"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The cat saw the red [MASK]."
    assert len(lines) == 3
    share, sign, _ = lines[1].split()
    assert 0 < float(share) <= 100
    assert sign == "%"


def test_inspect_tells_sizes_and_training(trained, capsys):
    assert main(["inspect", str(trained), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["num_attention_heads"] == 4
    assert facts["num_parameters"] == sum(facts["parameters"].values())
    assert facts["training"]["steps"] == 200
    model = BertForPreTraining.from_pretrained(trained)
    assert facts["num_parameters"] == sum(p.numel() for p in model.parameters())
    assert main(["inspect", str(trained)]) == 0
    text = capsys.readouterr().out
    assert "200 of 200 steps" in text
    assert "4 heads" in text


def test_a_checkpoint_is_a_hugging_face_folder(trained):
    from transformers import AutoModelForPreTraining, AutoTokenizer

    folder = list_checkpoints(trained)[-1]
    theirs = AutoModelForPreTraining.from_pretrained(folder).eval()
    their_tokenizer, tokenizer = AutoTokenizer.from_pretrained(folder), Tokenizer.load(folder)
    text = "The old captain remembered an open door."
    batch = tokenizer.encode_batch([text])
    assert their_tokenizer(text)["input_ids"] == batch.input_ids[0].tolist()
    ids = torch.from_numpy(batch.input_ids)
    with torch.no_grad():
        ours = BertForPreTraining.from_pretrained(trained)(ids).prediction_logits
        assert_close(ours, theirs(ids).prediction_logits)
    assert BertModel.from_pretrained(trained)(ids).pooler_output.shape == (1, 32)


def test_muon_resumes_bit_for_bit(workshop, tmp_path):
    words = ["--optimizer", "muon", "--schedule", "constant", "--warmup", "0"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main(pretrain_words(workshop, whole, *words, steps=6)) == 0
    for steps in (3, 6):
        assert main(pretrain_words(workshop, parts, *words, steps=steps)) == 0
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert tensors(whole, name) == tensors(parts, name)


LONG = ("--long-length", "64", "--long-share", "0.3", "--checkpoint-every", "1", "--keep", "9")


def test_the_last_steps_have_long_examples_and_resume_bit_for_bit(workshop, tmp_path, capsys):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main(pretrain_words(workshop, whole, *LONG, steps=10)) == 0
    spent = [row["tokens"] for row in rows(whole) if row["event"] == "train"]
    sizes = [after - before for before, after in pairwise([0, *spent])]
    assert max(sizes[:7]) <= 16 * 32 < min(sizes[7:])
    config = json.loads((list_checkpoints(whole)[-1] / "tokenizer_config.json").read_text())
    assert config["model_max_length"] == 64
    shutil.copytree(whole, parts)
    for path in list_checkpoints(parts)[-2:]:
        shutil.rmtree(path)
    assert main(pretrain_words(workshop, parts, *LONG, steps=10)) == 0
    assert "resuming after step 8" in capsys.readouterr().err
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert tensors(whole, name) == tensors(parts, name)


def test_a_run_that_grows_has_short_examples_again_before_its_last_part(workshop, tmp_path):
    run = tmp_path / "run"
    assert main(pretrain_words(workshop, run, *LONG, steps=4)) == 0
    assert main(pretrain_words(workshop, run, *LONG, steps=10)) == 0
    spent = [row["tokens"] for row in rows(run) if row["event"] == "train"]
    is_long = [after - before > 16 * 32 for before, after in pairwise([0, *spent])]
    assert is_long == [False] * 3 + [True] + [False] * 3 + [True] * 3


def test_a_dry_run_measures_both_lengths(workshop, tmp_path, capsys):
    assert main(pretrain_words(workshop, tmp_path / "run", *LONG, "--dry-run", "--json")) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert estimate["long_pace"]["tokens_per_step"] > 1.2 * estimate["pace"]["tokens_per_step"]
    assert estimate["num_steps"] == 12


def test_checkpointed_activations_change_no_bit_and_may_be_switched_on_later(workshop, tmp_path):
    plain, lean = tmp_path / "plain", tmp_path / "lean"
    budget = ("--dropout", "0.2", "--schedule", "constant", "--warmup", "0")
    assert main(pretrain_words(workshop, plain, *budget, steps=4)) == 0
    assert main(pretrain_words(workshop, lean, *budget, steps=2)) == 0
    words = pretrain_words(workshop, lean, *budget, "--checkpoint-activations", steps=4)
    assert main(words) == 0
    assert tensors(plain, "model.safetensors") == tensors(lean, "model.safetensors")


@pytest.mark.parametrize(
    ("budget", "least", "most"), [(["--tokens", "3000"], 5, 9), (["--minutes", "10"], 5, 5)]
)
def test_other_budgets_become_steps_and_stay(
    workshop, tmp_path, monkeypatch, budget, least, most, capsys
):
    pace = StepPace(100.0, 0.0, 500.0, 1e6, 1)  # 100 seconds a step, and 10 minutes have nearly six
    monkeypatch.setattr(training_budget, "measure_pace", lambda *_: pace)
    monkeypatch.setattr(lifecycle, "find_seconds", lambda *_: None)  # it isn't planned again
    words = pretrain_words(workshop, tmp_path / "run", "--json", *budget)
    del words[words.index("--steps") : words.index("--steps") + 2]
    assert main(words) == 0
    num_steps = json.loads(capsys.readouterr().out)["num_steps"]
    assert least <= num_steps <= most
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["num_steps"] == num_steps


def test_a_loss_that_is_not_finite_names_step_shard_and_examples(
    workshop, tmp_path, monkeypatch, capsys
):
    keys, loss = [], BertObjective.loss

    def spoil(model, batch):
        scores = loss(model, batch)
        if model.training:
            keys.append(batch.keys)
        if len(keys) > 2:
            return Scores({name: torch.nan * sums for name, sums in scores.losses.items()}, {})
        return scores

    monkeypatch.setattr(BertObjective, "loss", staticmethod(spoil))
    monkeypatch.setattr(loop, "MAX_SKIPPED_STEPS", 2)
    run = tmp_path / "run"
    assert main(pretrain_words(workshop, run)) == 2
    error = capsys.readouterr().err
    (shard,) = ShardSet.open(workshop / "shards").train
    for step, examples in enumerate(keys[2:], 3):
        numbers = ", ".join(str(key.index) for key in examples)
        named = f"{numbers} of shard {shard.name} in epoch 0"
        assert f"step {step}: loss or gradient is not finite; the step was" in error
        assert f"skipped (examples: {named}" in error
    assert "that was 2 steps in a row: lower --learning-rate" in error
    skipped = [row for row in rows(run) if row["event"] == "not-finite"]
    assert [row["step"] for row in skipped] == [3, 4]
    assert skipped[-1]["examples"] == named


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "holds a list"), ('{"type_vocab_size": 1}', "type_vocab_size must be at least 2")],
)
def test_a_model_file_that_can_not_be_meant(workshop, tmp_path, capsys, content, message):
    (tmp_path / "odd.json").write_text(content)
    words = pretrain_words(workshop, tmp_path / "run")
    words[words.index("--size") + 1] = str(tmp_path / "odd.json")
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_every_run_is_measured_on_the_same_held_out_examples(workshop):
    shards = ShardSet.open(workshop / "shards")
    tokenizer = shards.load_tokenizer()
    first, second = (
        held_out_batches(
            shards, tokenizer, PretrainSettings(seed=seed, max_length=64, mask_rate=rate)
        )
        for seed, rate in ((0, 0.15), (1, 0.4))
    )
    assert sum(len(batch.keys) for batch in first) == sum(len(batch.keys) for batch in second) > 9
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.packed.input_ids, other.packed.input_ids)
        assert torch.equal(one.positions, other.positions)


def test_a_finished_run_whose_log_is_lost_is_evaluated_again(workshop, trained, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    before = [row for row in rows(trained) if row["event"] == "eval"][-1]["loss"]
    (copy / "log.jsonl").unlink()
    assert main([*pretrain_words(workshop, copy, steps=200), "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["loss"] == close(before, "float32")


def test_a_folder_that_is_not_a_run_is_left_alone(workshop, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(pretrain_words(workshop, tmp_path)) == 2
    assert "holds something that this command didn't write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
