"""A reranker's folder is one of a CrossEncoder, which computes the same values."""

import pytest
import torch
from sentence_transformers import CrossEncoder
from tests.closeness import assert_close
from tests.unit.recipes.finetune.small import QUICK, save_model

import bertkit
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.jobs.convert import convert

TEXTS = ["the cat saw a hat", "a dog lost", "the fox", "a hat", "lost " * 30]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_cross_encoder_computes_the_same_values(pooling, tmp_path):
    save_model(tmp_path / "model")
    if pooling == "mean":  # which the folder of a sentence encoder says
        modules = SentenceModel((Pooling(32, ("mean",)),), max_seq_length=16)
        write_sentence_model(tmp_path / "model", modules)
    rows = [(f"the {one}", text, "not") for one, text in zip(("cat", "dog"), TEXTS, strict=False)]
    columns = ("query", "passage", "negative")
    reranker = bertkit.finetune(
        "rerank",
        model=tmp_path / "model",
        train=[dict(zip(columns, row, strict=True)) for row in rows * 4],
        output=tmp_path / "out",
        max_length=16,
        negatives="file",
        **QUICK.model_dump(include={"epochs", "learning_rate", "device"}),
    )
    assert (tmp_path / "out" / "modules.json").exists() == (pooling == "mean")
    reranker = bertkit.Reranker.load(tmp_path / "out", device="cpu", engine="torch")
    found = reranker.rank("the cat", TEXTS)
    ours = torch.tensor([one.score for one in sorted(found, key=lambda one: one.row)])
    assert len({*ours.tolist()}) == len(TEXTS)
    convert(tmp_path / "out", tmp_path / "copy")  # the modules are written anew
    for folder in (tmp_path / "out", tmp_path / "copy"):
        model = CrossEncoder(str(folder), device="cpu")
        pairs = [("the cat", text) for text in TEXTS]
        assert_close(ours, model.predict(pairs, convert_to_tensor=True), "float32")
        ranked = model.rank("the cat", TEXTS)
        assert [one["corpus_id"] for one in ranked] == [one.row for one in found]
