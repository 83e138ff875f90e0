"""From text to result, with each family's tokenizer and model: transformers' own pipelines."""

import pytest
import torch
import transformers
from tests.closeness import close
from tests.families import FAMILIES, make_folder
from tests.tokenizer_folders import TEXTS
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import bertkit

ENGINES = ["torch", "openvino"]
# `{}` is the mask, which takes the blank before it along where a family's tokenizer says so.
MASKED = ["All human {} are born free.", "{} être", "人人生而{},平等。", "free {} {}!", "a\n{}"]
ROOM = {"max_position_embeddings": 520}  # for a pair of the longest texts
every_family = pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"electra-wide"}))
every_engine = pytest.mark.parametrize("engine", ENGINES)


@every_family
@every_engine
def test_masked_words_are_those_of_the_pipeline(family, engine, tmp_path):
    folder = make_folder(tmp_path, family, "ForMaskedLM")
    theirs = transformers.pipeline("fill-mask", str(folder), device="cpu", top_k=4)
    texts = [text.format(*[theirs.tokenizer.mask_token] * 2) for text in MASKED]
    ours = bertkit.FillMask.load(folder, device="cpu", precision="fp32", engine=engine)
    for text, found in zip(texts, ours(texts, top_k=4), strict=True):
        expected = theirs(text)
        blanks = expected if isinstance(expected[0], list) else [expected]
        for candidates, others in zip(found.blanks, blanks, strict=True):
            ids = [one["token"] for one in others]
            assert [one.token_id for one in candidates] == ids
            scores = close([one["score"] for one in others], "float32", floor=0)
            assert [one.probability for one in candidates] == scores


@every_family
@every_engine
def test_classes_of_texts_and_pairs_are_those_of_transformers(family, engine, tmp_path):
    folder = make_folder(tmp_path, family, "ForSequenceClassification", **ROOM)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ours = bertkit.Classifier.load(folder, device="cpu", precision="fp32", engine=engine)
    texts = [*TEXTS.values()]
    for inputs in (texts, list(zip(texts, texts[::-1], strict=True))):
        for one, found in zip(inputs, ours(inputs), strict=True):
            parts = (one,) if isinstance(one, str) else one
            encoded = tokenizer(*parts, return_tensors="pt")
            with torch.no_grad():
                expected = model(**encoded).logits[0].softmax(dim=-1)
            assert [*found.probabilities.values()] == close(expected.tolist(), "float32")
