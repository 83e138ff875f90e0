"""A model of pairs orders hits anew."""

import pytest

import bertkit
from bertkit.base.errors import InputError
from bertkit.inference.reranker import Reranker, find_value
from bertkit.retrieval.hits import Hit
from bertkit.retrieval.index import Index
from bertkit.retrieval.reranking import rerank

TEXTS = ["the cat", "a dog", "the hat"]


def make(model, task, labels, folder):
    rows = [("the cat", text, label) for text, label in zip(TEXTS, labels, strict=True)] * 4
    bertkit.finetune(task, model=model, train=rows, output=folder, epochs=1, max_length=16)
    return folder


def test_hits_are_in_the_order_of_the_models_values(model, tmp_path):
    folder = make(model, "regress", (0.5, -1.0, 2.0), tmp_path / "reranker")
    values = {text: bertkit.Regressor.load(folder)(("the cat", text)).value for text in TEXTS}
    index = Index(model=model, engine="torch")
    index.add([*TEXTS, "a cat"])
    hits = index.search("the cat", by="vectors", rerank=str(folder), candidates=4)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.reranked == hit.score for hit in hits)
    assert {hit.text for hit in hits} == {*TEXTS, "a cat"}
    assert [hit.text for hit in hits if hit.text in values] == sorted(
        values, key=values.get, reverse=True
    )
    assert len(index.search("the cat", rerank=str(folder), candidates=2, top_k=3)) == 3
    (tmp_path / "long.txt").write_text("\n\n".join(["the cat"] * 4))
    index.add([tmp_path / "long.txt"])
    found = index.search(
        "the cat", rerank=str(folder), candidates=2, top_k=5, by="vectors", by_document=True
    )
    assert len({hit.id for hit in found}) == 5


def test_equal_values_keep_their_order(model, tmp_path, monkeypatch):
    def find_rounded(*args, **kwargs):  # products of some processors depend on the row of a batch
        return round(find_value(*args, **kwargs), 3)

    monkeypatch.setattr("bertkit.inference.reranker.find_value", find_rounded)
    reranker = Reranker.load(make(model, "classify", ("no", "yes", "no"), tmp_path / "pairs"))
    hits = [Hit(str(number), 1.0, text) for number, text in enumerate([*TEXTS, *TEXTS])]
    found = rerank(reranker, "the cat", hits)
    assert [one.reranked for one in found] == sorted((one.reranked for one in found), reverse=True)
    assert all(int(one.id) < int(two.id) for one, two in zip(found[::2], found[1::2], strict=True))


def test_a_model_of_single_texts_is_refused(model, tmp_path):
    rows = [("the cat", "a"), ("a dog", "b")] * 4
    given = {"model": model, "epochs": 1, "max_length": 16}
    bertkit.finetune("classify", train=rows, output=tmp_path / "single", **given)
    index = Index(model=model, engine="torch")
    index.add(TEXTS)
    with pytest.raises(InputError, match="pair"):
        index.search("the cat", rerank=str(tmp_path / "single"))
