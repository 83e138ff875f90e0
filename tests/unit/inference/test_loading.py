"""What loading reads is verified, once; what it doesn't read is left alone."""

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.families import FAMILIES, make_folder
from tests.unit.inference.small import save_kind, save_run, save_small, start

from bertkit.base.errors import CheckpointError, DamagedFileError, InputError, SettingsError
from bertkit.checkpoints import run_folder
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.loading import LoadedModel
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.torch_model import TorchModel
from bertkit.jobs.inspect import describe
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.heads import (
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
)
from bertkit.models.open_model import OpenModel

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tensorflow"
TRANSFORMER = "sentence_transformers.models.Transformer"
MODEL_FILES = {"config.json", "model.safetensors"}
TOKENIZER_FILES = {"vocab.txt", "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture
def verified(monkeypatch):
    """How often each file was verified."""
    counts: Counter[str] = Counter()
    real = run_folder.verify_file

    def count(path: Path, record: object) -> None:
        counts[path.name] += 1
        real(path, record)

    monkeypatch.setattr(run_folder, "verify_file", count)
    return counts


@pytest.mark.parametrize("named", ["run", "checkpoint"])
@pytest.mark.parametrize(
    ("load", "files"),
    [
        (FillMask.load, MODEL_FILES | TOKENIZER_FILES),
        (BertModel.from_pretrained, MODEL_FILES),
    ],
)
def test_each_file_that_is_read_is_verified_once(tmp_path, verified, load, files, named):
    checkpoint = save_run(tmp_path)
    load(tmp_path if named == "run" else checkpoint)
    assert verified == Counter(files)


def test_describing_a_run_verifies_the_weights_whose_header_it_reads(tmp_path, verified):
    save_run(tmp_path)
    assert describe(tmp_path).training["steps"] == 3
    assert verified == Counter(["config.json", "run_state.json", "model.safetensors"])


@pytest.mark.parametrize("name", sorted(MODEL_FILES | TOKENIZER_FILES))
def test_a_damaged_file_is_named(tmp_path, name):
    path = save_run(tmp_path) / name
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=f"{name} is damaged"):
        FillMask.load(tmp_path)


def test_what_training_alone_needs_may_be_gone(tmp_path):
    checkpoint = save_run(tmp_path)
    (checkpoint / "optimizer.safetensors").unlink()
    FillMask.load(tmp_path)


def test_a_vocabulary_larger_than_the_models_is_refused(tmp_path):
    save_small(tmp_path, vocab_size=9)
    with pytest.raises(CheckpointError, match="they don't match"):
        FillMask.load(tmp_path)


def test_any_checkpoint_with_the_head_is_enough(tmp_path):
    save_kind(tmp_path / "words", BertForMaskedLM)
    save_kind(tmp_path / "pairs", BertForNextSentencePrediction)
    whole = tmp_path / "words" / "whole"
    filled = FillMask.load(tmp_path / "words")("the [MASK] saw")
    assert filled == FillMask.load(whole)("the [MASK] saw")
    assert filled == start(FillMask, TorchModel.load(BertForPreTraining, whole))("the [MASK] saw")
    pair = ("the cat", "a dog")
    judged = NextSentence.load(tmp_path / "pairs")(pair)
    assert judged == NextSentence.load(whole)(pair)
    assert judged == start(NextSentence, TorchModel.load(BertForPreTraining, whole))(pair)


def test_a_checkpoint_without_the_head_is_refused(tmp_path):
    save_kind(tmp_path / "words", BertForMaskedLM)
    save_kind(tmp_path / "pairs", BertForNextSentencePrediction)
    with pytest.raises(CheckpointError, match="pairs has no masked_lm head, which BertForMaskedLM"):
        FillMask.load(tmp_path / "pairs")
    with pytest.raises(CheckpointError, match="words has no pooler and no next_sentence head"):
        NextSentence.load(tmp_path / "words")


@pytest.mark.parametrize("kind", [FillMask, NextSentence])
def test_a_revision_is_handed_to_the_hub(tmp_path, kind):
    save_small(tmp_path)
    with pytest.raises(SettingsError, match=r"revision \(v1\) chooses a version"):
        kind.load(tmp_path, revision="v1")


def test_a_model_of_one_segment_judges_no_pair(tmp_path):
    save_small(tmp_path, type_vocab_size=1)
    assert FillMask.load(tmp_path)("the [MASK]").blanks
    with pytest.raises(InputError, match="type_vocab_size is 1"):
        NextSentence.load(tmp_path)(("the cat", "a dog"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_without_a_second_segment_may_read_pairs(tmp_path, family):
    loaded = LoadedModel.of(OpenModel.open(make_folder(tmp_path, family)))
    assert (loaded.config.type_vocab_size < 2) == (FAMILIES[family].num_segments < 2)
    loaded.check_pairs()


def test_the_tokenizer_lies_where_the_encoder_does(tmp_path):
    save_small(tmp_path / "0_Transformer")
    whole, filled = tmp_path / "0_Transformer", "the [MASK] saw"
    modules = [{"idx": 0, "name": "0", "path": "0_Transformer", "type": TRANSFORMER}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    assert FillMask.load(tmp_path)(filled) == FillMask.load(whole)(filled)
    by_prefix = FillMask.load(GOLDEN / "bert_model.ckpt")
    assert by_prefix(filled) == FillMask.load(GOLDEN)(filled)
