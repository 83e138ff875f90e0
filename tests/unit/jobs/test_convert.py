"""What is read is what is written: every tensor, the config's meaning, the other files."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.inference.small import build_model, build_sentence_model, save_run
from torch import Tensor

from bertkit import BertForSequenceClassification, Tokenizer
from bertkit.base.errors import CheckpointError, ResumeError, SettingsError, UnsafeFileError
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.sentence_modules import Dense
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.checkpoints.torch_tensors import read_tensor
from bertkit.jobs import convert as module
from bertkit.jobs.convert import MAX_COPIED_BYTES, convert
from bertkit.jobs.settings import ConvertSettings
from bertkit.models.bert.encoder import BertModel
from bertkit.models.open_model import OpenModel

ENGINE = "tokenizer.json"


def read_tensors(folder: Path) -> dict[str, Tensor]:
    tensors = open_checkpoint(folder).tensors
    return {name: read_tensor(tensors[name]).clone() for name in sorted(tensors)}


def rewrite_tensors(folder: Path, **changes: Tensor | None) -> None:
    path = folder / "model.safetensors"
    tensors: dict[str, Any] = {name: t.clone() for name, t in load_file(path).items()} | changes
    save_file({name: t for name, t in tensors.items() if t is not None}, path)


def rewrite_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name


def test_tensors_config_and_tokenizer_come_out_as_they_went_in(source, output):
    rewrite_config(source, something_of_theirs={"kept": [1]})
    result = convert(source, output)
    assert_same(read_tensors(output), read_tensors(source))
    config = json.loads((output / "config.json").read_text())
    assert config == json.loads((source / "config.json").read_text())
    assert (result.format, result.architecture) == ("huggingface", "BertForPreTraining")
    assert (result.dropped, result.notes) == ((), ())
    assert result.dtypes == {"float32": 46}
    assert result.num_parameters == sum(p.numel() for p in build_model().parameters())
    assert Tokenizer.load(output).fingerprint == Tokenizer.load(source).fingerprint
    written = {path.name: path.stat().st_size for path in output.iterdir()}
    assert {name: record.size_bytes for name, record in result.files.items()} == written
    assert result.size_bytes == sum(written.values())


def test_an_old_bin_with_old_names_and_copies_becomes_a_folder_of_today(source, output):
    tensors = load_file(source / "model.safetensors")
    (source / "model.safetensors").unlink()
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"): t
        for name, t in tensors.items()
    }
    old["cls.predictions.decoder.weight"] = old["bert.embeddings.word_embeddings.weight"]
    old["cls.predictions.decoder.bias"] = old["cls.predictions.bias"]
    old["bert.embeddings.position_ids"] = torch.arange(24)[None]
    torch.save(old, source / "pytorch_model.bin")
    rewrite_config(source, architectures=["BertForMaskedLM"], torch_dtype="float32")
    result = convert(source, output)
    assert_same(read_tensors(output), dict(sorted(tensors.items())))
    assert result.dropped == (
        "bert.embeddings.position_ids",
        "cls.predictions.decoder.bias",
        "cls.predictions.decoder.weight",
    )
    config = json.loads((output / "config.json").read_text())
    assert (config["architectures"], config["dtype"]) == (["BertForMaskedLM"], "float32")
    assert "torch_dtype" not in config
    assert result.heads == ("pooler", "masked_lm", "next_sentence")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_are_recast(source, output, dtype):
    convert(source, output, ConvertSettings(dtype=dtype))
    expected = {name: t.to(getattr(torch, dtype)) for name, t in read_tensors(source).items()}
    assert_same(read_tensors(output), expected)
    assert json.loads((output / "config.json").read_text())["dtype"] == dtype
    again = output.with_name("again")
    convert(output, again)
    assert_same(read_tensors(again), expected)


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (70000.0, "float16", r"cls\.predictions\.bias has values up to 7e\+04, and float16"),
        (float("nan"), None, r"cls\.predictions\.bias has NaN or infinity"),
        (float("-inf"), "bfloat16", r"cls\.predictions\.bias has NaN or infinity"),
    ],
)
def test_what_is_not_finite_is_named_and_nothing_is_written(source, output, value, dtype, message):
    rewrite_tensors(source, **{"cls.predictions.bias": torch.full((15,), value)})
    with pytest.raises(CheckpointError, match=message):
        convert(source, output, ConvertSettings(dtype=dtype))
    assert [path.name for path in source.parent.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra.weight": torch.zeros(1)}, r"unknown extra\.weight"),
        ({"cls.predictions.decoder.weight": torch.zeros(15, 8)}, "must equal bert.embeddings"),
        ({"cls.predictions.bias": torch.zeros(15, dtype=torch.int64)}, "floating-point"),
    ],
)
def test_every_tensor_has_its_place_or_nothing_is_written(source, output, changes, message):
    rewrite_tensors(source, **changes)
    with pytest.raises(CheckpointError, match=message):
        convert(source, output)
    assert not output.exists()


def test_large_weights_are_cut_into_several_files(source, output):
    result = convert(source, output, ConvertSettings(max_shard_size="3kB"))
    shards = sorted(path.name for path in output.glob("*.safetensors"))
    assert len(shards) > 2
    assert not (output / "model.safetensors").exists()
    assert result.files["model.safetensors.index.json"].size_bytes
    assert_same(read_tensors(output), read_tensors(source))


def test_a_head_that_the_architecture_does_not_use_is_kept(source, output):
    head = {"classifier.weight": torch.randn(3, 8), "classifier.bias": torch.randn(3)}
    rewrite_tensors(source, **head)
    rewrite_config(source, num_labels=3)
    result = convert(source, output)
    assert result.heads == ("pooler", "masked_lm", "next_sentence", "classifier")
    assert torch.equal(read_tensors(output)["classifier.weight"], head["classifier.weight"])
    labels = json.loads((output / "config.json").read_text())["id2label"]
    assert labels == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}


def test_labels_and_kind_of_problem_are_kept(source, output, tmp_path):
    labels = {0: "no", 1: "perhaps", 2: "yes"}
    model = BertForSequenceClassification.from_pretrained(
        source, new_heads=True, id2label=labels, problem_type="single_label_classification"
    )
    model.save_pretrained(tmp_path / "classifier")
    result = convert(tmp_path / "classifier", output)
    assert "there is no tokenizer" in result.notes[0]
    before, after = (
        BertForSequenceClassification.from_pretrained(folder).config
        for folder in (tmp_path / "classifier", output)
    )
    assert before == after
    assert (after.id2label, after.problem_type) == (labels, "single_label_classification")


def test_a_run_becomes_a_model(tmp_path, output):
    checkpoint = save_run(tmp_path / "run")
    assert convert(tmp_path / "run", output).format == "run_folder"
    assert_same(read_tensors(output), read_tensors(checkpoint))
    assert not (output / "optimizer.safetensors").exists()


def test_where_other_tools_cut_a_text_is_kept_or_follows_from_the_model(source, output, tmp_path):
    convert(source, output)
    path = output / "tokenizer_config.json"
    assert json.loads(path.read_text())["model_max_length"] == 24
    (output / "tokenizer_manifest.json").unlink()
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": 20}))
    convert(output, tmp_path / "again")
    again = json.loads((tmp_path / "again" / "tokenizer_config.json").read_text())
    assert again["model_max_length"] == 20
    assert Tokenizer.load(tmp_path / "again").vocab_size == 15


def test_a_tokenizer_that_is_not_berts_is_copied_as_it_is(source, output):
    (source / "tokenizer_manifest.json").unlink()
    engine = json.loads((source / ENGINE).read_text())
    engine["added_tokens"].append({"content": "new", "id": 15})
    (source / ENGINE).write_text(json.dumps(engine))
    result = convert(source, output)
    assert "can't read the tokenizer; it was copied unchanged" in result.notes[0]
    for name in ("vocab.txt", ENGINE, "tokenizer_config.json"):
        assert (output / name).read_bytes() == (source / name).read_bytes()


def test_files_of_which_a_tokenizer_is_made_are_copied_too(source, output):
    for name in ("vocab.txt", ENGINE, "tokenizer_manifest.json"):
        (source / name).unlink()
    (source / "sentencepiece.bpe.model").write_bytes(b"pieces")
    result = convert(source, output)
    assert "it was copied unchanged" in result.notes[0]
    assert "sentencepiece.bpe.model alone" in result.notes[0]
    assert (output / "sentencepiece.bpe.model").read_bytes() == b"pieces"


def test_tokens_that_were_added_in_the_first_years_are_copied_too(source, output):
    for name in ("tokenizer_manifest.json", ENGINE, "tokenizer_config.json"):
        (source / name).unlink()
    (source / "added_tokens.json").write_text('{"<new>": 15}')
    result = convert(source, output)
    assert "the added token '<new>' isn't entry 15" in result.notes[0]
    for name in ("vocab.txt", "added_tokens.json"):
        assert (output / name).read_bytes() == (source / name).read_bytes()
    assert not (output / ENGINE).exists()


def test_words_for_people_are_copied_and_others_are_not(source, output):
    (source / "README.md").write_text("A model.")
    (source / "special_tokens_map.json").write_text("{}")
    (source / "modeling.py").write_text("raise SystemExit")
    convert(source, output)
    assert (output / "README.md").read_text() == "A model."
    assert (output / "special_tokens_map.json").is_file()
    assert not (output / "modeling.py").exists()


def test_a_tokenizer_may_not_be_a_way_out(source, output, tmp_path):
    (source / "vocab.txt").rename(tmp_path / "vocab.txt")
    (source / "vocab.txt").symlink_to(tmp_path / "vocab.txt")
    with pytest.raises(UnsafeFileError, match="leads out of its folder"):
        convert(source, output)
    assert not output.exists()


def test_a_copied_file_may_not_be_a_way_out_nor_too_large(source, output, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (source / "README.md").symlink_to(tmp_path / "secret")
    with pytest.raises(UnsafeFileError, match="leads out of its folder"):
        convert(source, output)
    (source / "README.md").unlink()
    with (source / "README.md").open("wb") as stream:
        stream.truncate(MAX_COPIED_BYTES + 1)
    with pytest.raises(UnsafeFileError, match="bytes, the limit for copied files"):
        convert(source, output)
    assert not output.exists()


@pytest.mark.parametrize("has_bias", [True, False])
def test_what_stands_behind_an_encoder_of_sentences_is_recast_with_it(source, output, has_bias):
    linear = BertModel(build_model().config).pooler.dense
    write_sentence_model(source, build_sentence_model(linear, has_bias=has_bias))
    (source / "README.md").write_text("Sentences.")
    result = convert(source, output, ConvertSettings(dtype="float16"))
    assert result.format == "sentence_transformers"
    assert {"modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors"} <= set(
        result.files
    )
    written, model = OpenModel.open(output).sentences, OpenModel.open(source).sentences
    assert (written.prompts, written.max_seq_length) == (model.prompts, model.max_seq_length)
    dense = written.modules[1]
    assert isinstance(dense, Dense)
    assert torch.equal(read_tensor(dense.weight), linear.weight.detach().half())
    assert (dense.bias is not None) == has_bias
    assert (output / "README.md").read_text() == "Sentences."


def test_what_comes_into_the_output_meanwhile_is_left_alone(source, output, monkeypatch):
    def write_meanwhile(*arguments):
        output.mkdir()
        (output / "precious.txt").write_text("mine")
        return convert_weights(*arguments)

    convert_weights = module.convert_weights
    monkeypatch.setattr(module, "convert_weights", write_meanwhile)
    with pytest.raises(SettingsError, match=r"isn't empty \(precious\.txt"):
        convert(source, output)
    assert [path.name for path in output.parent.iterdir() if path != source] == ["output"]
    assert (output / "precious.txt").read_text() == "mine"


def test_a_folder_that_was_put_aside_is_put_back_and_left_alone(source, output):
    aside = output.with_name("output.replaced")
    aside.mkdir()
    (aside / "precious.txt").write_text("mine")
    with pytest.raises(SettingsError, match=r"isn't empty \(precious\.txt"):
        convert(source, output)
    assert (output / "precious.txt").read_text() == "mine"


def test_two_never_convert_into_one_folder(source, output, monkeypatch):
    def convert_meanwhile(*arguments):
        with pytest.raises(ResumeError, match=r"another process is converting into .*output"):
            convert(source, output)
        return convert_weights(*arguments)

    convert_weights = module.convert_weights
    monkeypatch.setattr(module, "convert_weights", convert_meanwhile)
    convert(source, output)
    assert sorted(path.name for path in output.parent.iterdir()) == ["output", "source"]


def test_more_files_than_are_read_are_not_written(source, output, monkeypatch):
    monkeypatch.setattr("bertkit.checkpoints.huggingface.MAX_SHARDS", 3)
    monkeypatch.setattr(ConvertSettings, "shard_bytes", 100)
    with pytest.raises(SettingsError, match=r"would make \d+ files, and at most 3 are read"):
        convert(source, output)
    assert not output.exists()


@pytest.mark.parametrize("depth", [200, 300, 900])
def test_a_key_that_is_kept_is_one_that_can_be_written_back(source, output, depth):
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    rewrite_config(source, kept=nested)
    if depth == 200:
        convert(source, output)
        assert json.loads((output / "config.json").read_text())["kept"] == nested
        return
    with pytest.raises(CheckpointError, match="depth exceeded"):
        convert(source, output)
