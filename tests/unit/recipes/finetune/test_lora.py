"""Fine-tuning with LoRA: what is trained, saved, merged, resumed and refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.closeness import assert_close, close
from tests.unit.recipes.finetune.small import QUICK, TASK, open_job, save_model, write_tables
from tests.unit.recipes.stopping import stop_at

from bertkit import rerank
from bertkit.base.errors import (
    CheckpointError,
    InputError,
    MissingFileError,
    ResumeError,
    SettingsError,
    StoppedError,
)
from bertkit.checkpoints.peft import open_adapter
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.checkpoints.torch_tensors import lazy_tensor
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.seeds import finetune_seeds
from bertkit.tasks.table import TASKS

LORA = QUICK.model_copy(update={"lora": 4, "learning_rate": 3e-2})
IDS = torch.tensor([[2, 5, 6, 7, 8, 3], [2, 9, 8, 7, 6, 3]])
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    save_model(tmp_path / "base")
    train, dev = write_tables(tmp_path)
    return Sources("classify", str(tmp_path / "base"), train, dev)


@pytest.fixture
def output(sources: Sources, tmp_path: Path) -> Path:
    finetune(sources, tmp_path / "output", TASK, LORA)
    return tmp_path / "output"


def score(model: str | Path | OpenModel) -> torch.Tensor:
    scores: torch.Tensor = BertForSequenceClassification.from_pretrained(model)(IDS)
    return scores.detach()


def test_only_updates_and_the_head_are_trained(sources: Sources) -> None:
    job = open_job(sources, TASK, LORA)
    trained = {name for name, each in job.model.named_parameters() if each.requires_grad}
    parts = {name.rpartition(".")[2] if "lora" in name else name for name in trained}
    assert parts == {
        *("lora_a", "lora_b", "classifier.weight", "classifier.bias"),
        *("pooler.dense.weight", "pooler.dense.bias"),
    }
    assert len(trained) == 4 + 2 * 2 * 4  # two layers of four matrices


def test_the_folder_is_the_merged_model(output: Path, tmp_path: Path) -> None:
    assert_close(score(output), score(output / "adapter"))
    base, merged = (load_file(path / "model.safetensors") for path in (tmp_path / "base", output))
    name = "bert.encoder.layer.1.attention.self.value.weight"
    assert merged[name] != close(base[name])
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(base[name], merged[name])
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["metrics"]["accuracy"] > 0.9
    assert {f"adapter/{ADAPTER_CONFIG}", f"adapter/{ADAPTER_WEIGHTS}"} <= metrics["files"].keys()
    opened = OpenModel.open(output / "adapter")
    assert opened.config.label_names == ("bad", "good")
    assert opened.tokenizer.vocab_size == 15


def test_checkpoints_hold_only_what_is_trained(sources: Sources, tmp_path: Path) -> None:
    finetune(sources, tmp_path / "output", TASK, LORA.model_copy(update={"keep": 2}))
    checkpoints = list((tmp_path / "output/run/checkpoints").iterdir())
    for checkpoint in checkpoints:
        assert not (checkpoint / "model.safetensors").exists()
        weights, state = (
            load_file(checkpoint / name) for name in (ADAPTER_WEIGHTS, "optimizer.safetensors")
        )
        assert not any("embeddings" in name for name in (*weights, *state))
    assert torch.isfinite(score(tmp_path / "output/run")).all()  # the newest one, opened by itself


def test_a_resumed_run_is_bit_for_bit_the_same(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = LORA.model_copy(update={"dropout": 0.1, "checkpoint_every": 3})
    finetune(sources, tmp_path / "whole", TASK, settings)
    with monkeypatch.context() as patch:
        stop_at(7, patch)
        with pytest.raises(StoppedError):
            finetune(sources, tmp_path / "parts", TASK, settings)
    finetune(sources, tmp_path / "parts", TASK, settings)
    for name in ("model.safetensors", f"adapter/{ADAPTER_WEIGHTS}"):
        whole, parts = ((tmp_path / run / name).read_bytes() for run in ("whole", "parts"))
        assert whole == parts, name


def test_a_run_is_not_resumed_on_another_base_model(sources: Sources, tmp_path: Path) -> None:
    output = tmp_path / "output"
    finetune(sources, output, TASK, LORA.model_copy(update={"keep": 1}))
    (output / "metrics.json").unlink()
    save_model(tmp_path / "base", initializer_range=0.2)
    with pytest.raises(ResumeError, match="source: different files"):
        finetune(sources, output, TASK, LORA)


def test_the_best_of_several_seeds_has_its_adapter(sources: Sources, tmp_path: Path) -> None:
    finetune_seeds(sources, tmp_path / "output", TASK, LORA, 2)
    assert_close(score(tmp_path / "output"), score(tmp_path / "output/adapter"))
    assert len(list(tmp_path.glob(f"output/seeds/*/adapter/{ADAPTER_WEIGHTS}"))) == 1


def test_a_base_model_may_be_named_relative_to_the_adapter(output: Path, tmp_path: Path) -> None:
    before = score(output / "adapter")
    shutil.copytree(tmp_path / "base", output / "base")
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(MissingFileError, match="correct base_model_name_or_path"):
        score(output / "adapter")
    change(output / "adapter", base_model_name_or_path="../base")
    assert_close(score(output / "adapter"), before)


def change(folder: Path, **values: object) -> None:
    path = folder / ADAPTER_CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_an_adapter_for_another_model_is_an_error(output: Path, tmp_path: Path) -> None:
    save_model(tmp_path / "base", hidden_size=16)
    with pytest.raises(CheckpointError, match=r"adapter for .*output.dense is \[16, 16\] there"):
        score(output / "adapter")


def test_an_adapter_for_a_model_of_the_same_sizes_is_an_error(output: Path, tmp_path: Path) -> None:
    save_model(tmp_path / "base", initializer_range=0.2)
    with pytest.raises(CheckpointError, match="was trained on another model"):
        score(output / "adapter")


def test_an_adapter_is_not_adapted_again(output: Path, sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="merge it into its base model first"):
        finetune(replace(sources, model=str(output / "adapter")), tmp_path / "again", TASK, LORA)


def test_an_adapter_of_an_adapter_is_an_error(output: Path) -> None:
    change(output / "adapter", base_model_name_or_path=str(output / "adapter"))
    with pytest.raises(CheckpointError, match="the base of another one"):
        score(output / "adapter")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"use_dora": True}, "use_dora isn't supported"),
        ({"bias": "all"}, "bias"),
        ({"peft_type": "IA3"}, "peft_type"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights isn't supported"),
        ({"alpha_pattern": {"(a+)+": 4}}, "pattern"),
    ],
)
def test_other_kinds_of_adapters_are_errors(
    output: Path, values: dict[str, object], message: str
) -> None:
    change(output / "adapter", **values)
    with pytest.raises(CheckpointError, match=message):
        open_adapter(output / "adapter")


def test_a_factor_without_the_other_is_an_error(output: Path) -> None:
    path = output / "adapter" / ADAPTER_WEIGHTS
    tensors = load_file(path)
    del tensors["base_model.model.bert.encoder.layer.0.output.dense.lora_A.weight"]
    save_file(tensors, path)
    with pytest.raises(
        CheckpointError,
        match=r"its factors are \[32, 4\] and \[\]",
    ):
        open_adapter(output / "adapter")


def test_freeze_and_features_exclude_lora() -> None:
    for values in ({"freeze": "2"}, {"features": "last"}):
        with pytest.raises(ValueError, match="lora"):
            type(LORA)(lora=4, **values)


def test_a_rank_that_is_too_high_is_an_error(sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"lora \(32\) must be below 32"):
        finetune(sources, tmp_path / "output", TASK, LORA.model_copy(update={"lora": 32}))


def test_a_model_without_lora_is_whole(sources: Sources) -> None:
    model: PretrainedBert = open_job(sources, TASK, QUICK).model
    assert model.adapter_origin is None


def test_the_default_learning_rate_is_higher(sources: Sources) -> None:
    settings = type(LORA)(lora=4, device="cpu")
    assert open_job(sources, TASK, settings).settings.learning_rate == close(3e-4)
    given = type(LORA)(lora=4, device="cpu", learning_rate=1e-3)
    assert open_job(sources, TASK, given).settings.learning_rate == 1e-3


@pytest.fixture
def pairs(tmp_path: Path) -> Sources:
    """Queries and passages, and a sentence encoder with a dense layer."""
    save_model(tmp_path / "encoder")
    weight = torch.randn(16, 32, generator=torch.Generator().manual_seed(0))
    modules = (Pooling(32, ("mean",)), Dense(lazy_tensor(weight), None, "tanh"), Normalize())
    write_sentence_model(tmp_path / "encoder", SentenceModel(modules, max_seq_length=12))
    words = ["the cat saw", "a dog lost", "the hat", "cat hat", "dog saw", "lost the", "saw a cat"]
    rows = [{"query": f"{word} .", "passage": f"{word} the dog"} for word in words * 2]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Sources("embed", str(tmp_path / "encoder"), str(path))


def test_an_encoder_of_texts_is_adapted_and_resumed(
    pairs: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = LORA.model_copy(update={"batch_size": 4, "held_out": 0.3, "checkpoint_every": 2})
    task = TASKS["embed"].settings.model_validate({"max_length": 12})
    finetune(pairs, tmp_path / "whole", task, settings)
    with monkeypatch.context() as patch:
        stop_at(3, patch)
        with pytest.raises(StoppedError):
            finetune(pairs, tmp_path / "parts", task, settings)
    finetune(pairs, tmp_path / "parts", task, settings)
    found = [
        Embedder.load(tmp_path / name, device="cpu", precision="fp32")(["the cat", "a dog"])
        for name in ("encoder", "whole", "parts", "whole/adapter")
    ]
    start, whole, parts, adapter = (torch.from_numpy(vectors) for vectors in found)
    assert whole != close(start, within=1e-3)
    assert torch.equal(whole, parts)
    assert_close(adapter, whole)


def test_a_reranker_is_adapted(sources: Sources, tmp_path: Path) -> None:
    words = ("cat", "dog", "hat")
    rows = [
        f"{query} {end},the {word} {end},{int(query == word)}"
        for end in ("saw", "lost")
        for query in words
        for word in words
    ]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["query,passage,label", *rows]))
    task = TASKS["rerank"].settings.model_validate({"max_length": 16})
    settings = LORA.model_copy(update={"held_out": 0.4})
    finetune(
        replace(sources, task="rerank", train=path, dev=None), tmp_path / "out", task, settings
    )
    found = [
        [hit.score for hit in rerank("cat saw", ["the cat", "the hat"], model=str(tmp_path / name))]
        for name in ("out", "out/adapter")
    ]
    assert found[0] == close(found[1], within=1e-4)
