"""Mined negatives."""

import json
from itertools import chain

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.inference.small import save_small
from tests.unit.recipes.stopping import stop_at

import bertkit
from bertkit.base.errors import InputError, ResumeError, StoppedError
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.cli.main import main
from bertkit.inference.embeddings.exact_search import ExactSearch
from bertkit.recipes.finetune.embed_job import EmbedJob
from bertkit.recipes.finetune.mining import NEGATIVES_FILE, Miner, find_answers, list_passages
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.embed.examples import EmbedExample

# Passages by the cosine of their angle to the query's, which is 0.
ANGLES = {"own": 20, "near": 15, "close": 25, "far": 40, "farther": 60, "opposite": 170}


def build(examples, **settings):
    """A miner that knows the vectors of all texts."""
    passages = [*dict.fromkeys([*list_passages(examples), *ANGLES])]
    angles = np.radians([ANGLES[text] for text in passages])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    numbers = {text: number for number, text in enumerate(passages)}
    answers = find_answers(examples, numbers)
    queries = {one.query: np.array([1, 0], np.float32) for one in examples}
    pool, settings = np.arange(len(passages)), EmbeddingSettings(**settings)
    return Miner(settings, numbers, answers, queries, vectors, pool), passages


def mine(*examples, **settings):
    miner, passages = build(examples, **settings)
    found = miner.mine(examples)
    return [[passages[number] for number in one.numbers] for one in found], miner


def test_the_most_similar_passages_that_are_far_enough_are_negatives():
    (found,), miner = mine(EmbedExample("q", ("own",)), num_negatives=2)
    assert found == ["own", "far", "farther"]
    assert miner.num_close == 2  # near, and close: cosines over 95 % of that of own
    (found,), miner = mine(EmbedExample("q", ("own",)), num_negatives=2, negative_margin=0.0)
    assert (found, miner.num_close) == (["own", "close", "far"], 1)


def test_only_some_ranks_are_looked_at():
    (found,), _ = mine(EmbedExample("q", ("own",)), num_negatives=9, negative_ranks=(4, 4))
    assert found == ["own", "farther"]  # of near, close, far, farther, opposite
    (found,), miner = mine(EmbedExample("q", ("own",)), negative_ranks=(1, 2))
    assert found == ["own"]
    assert "mined 0 negatives for 0 rows, none for 1 others" in miner.describe(
        [EmbedExample("q", ("own",))], miner.mine([EmbedExample("q", ("own",))])
    )


def test_what_answers_the_query_in_another_row_or_is_given_is_no_new_negative():
    rows = [EmbedExample("q", ("own", "farther")), EmbedExample("q", ("far",))]
    found, _ = mine(*rows, num_negatives=2)
    assert found == [["own", "farther", "opposite"], ["far", "farther", "opposite"]]


def test_only_the_pool_is_searched():
    miner, passages = build([EmbedExample("q", ("own",))], negative_margin=0.0)
    miner.pool = np.array([passages.index(text) for text in ("own", "farther", "opposite")])
    miner.pool.sort()
    (found,) = miner.mine([EmbedExample("q", ("own",))])
    assert [passages[number] for number in found.numbers] == ["own", "farther"]


def test_case_and_spaces_make_no_other_text():
    numbers = {"A  cat": 0, "a CAT": 1, "Who ?": 2, "a dog": 3}
    rows = [EmbedExample("who ?", ("A  cat",)), EmbedExample("WHO  ?", ("a dog",))]
    assert find_answers(rows, numbers) == {"who ?": {0, 1, 2, 3}, "WHO  ?": {0, 1, 2, 3}}


def test_cosines_are_those_of_the_passages_and_held_out_queries_get_what_a_search_shows():
    example = EmbedExample("q", ("own", "opposite"))
    miner, passages = build([example])
    (found,) = miner.retrieve([example], 3)
    assert [passages[number] for number in found.numbers] == ["own", "opposite", "near", "close"]
    angles = np.radians([ANGLES[passages[number]] for number in found.numbers])
    assert found.cosines == close(tuple(np.cos(angles).tolist()), within=1e-6)
    (kept,) = miner.retrieve([example], 0)
    assert [passages[number] for number in kept.numbers] == ["own", "opposite"]


def test_a_query_with_many_answers_is_searched_among_the_others(monkeypatch):
    rows = [EmbedExample("q", (text,)) for text in ("own", "near", "close")]
    rows.append(EmbedExample("r", ("own",)))
    miner, passages = build(rows, negative_ranks=(1, 2), negative_margin=0.0)
    searched = []
    search = ExactSearch.search

    def remember(self, queries, top_k, among=None):
        searched.append((len(queries), top_k))
        return search(self, queries, top_k, among)

    monkeypatch.setattr(ExactSearch, "search", remember)
    found = miner.mine(rows)
    assert searched == [(1, 3), (1, 2)]  # r with its one answer, then q among the others
    new = [[passages[number] for number in one.numbers[1:]] for one in found]
    assert new == [["far"], ["far"], ["far"], ["close"]]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    save_small(folder)
    pooling = Pooling(dimension=8, modes=("mean",))
    write_sentence_model(folder, SentenceModel((pooling,), max_seq_length=12))
    return folder


ROWS = [
    (f"the {who} {what}", f"{who} a {what} {where}")
    for who in ("cat", "dog")
    for what in ("saw", "lost")
    for where in ("hat", ".", "the")
]


def train(encoder, output, rows=ROWS, **settings):
    return bertkit.finetune(
        "embed",
        train=[{"query": query, "passage": passage} for query, passage in rows],
        model=encoder,
        output=output,
        negatives="mine",
        negative_margin=0.0,
        epochs=2,
        batch_size=4,
        checkpoint_every=1,
        keep=9,
        device="cpu",
        seed=1,
        **settings,
    )


def test_a_resumed_run_has_the_same_negatives(encoder, tmp_path, monkeypatch):
    train(encoder, tmp_path / "whole")
    record = tmp_path / "whole" / "run" / NEGATIVES_FILE
    mined = json.loads(record.read_text())
    added = [len(one["numbers"]) - 1 for one in mined["train"]]
    assert 0 < sum(added) <= len(added) == 9
    assert mined["held_out"] == []
    stopped = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(StoppedError):
            train(encoder, stopped)
    monkeypatch.setattr("bertkit.recipes.finetune.mining.mine", None)  # not once more
    kept = (stopped / "run" / NEGATIVES_FILE).rename(tmp_path / "kept")
    with pytest.raises(ResumeError, match=r"without its negatives .* again with --overwrite"):
        train(encoder, stopped)
    kept.rename(stopped / "run" / NEGATIVES_FILE)
    train(encoder, stopped)
    for name in ("model.safetensors", f"run/{NEGATIVES_FILE}"):
        assert (stopped / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_all_seeds_train_on_what_was_mined_once(encoder, tmp_path, monkeypatch, capsys):
    prompts = {"query": "the ", "document": "a "}
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(StoppedError):
            train(encoder, tmp_path / "m", seeds=2, prompts=prompts)
    assert capsys.readouterr().err.count("mined ") == 1
    monkeypatch.setattr("bertkit.recipes.finetune.mining.mine", None)  # not once more
    encoded = []
    monkeypatch.setattr(EmbedJob, "_check_kinds", lambda job: encoded.append(job.train))
    train(encoder, tmp_path / "m", seeds=2, prompts=prompts)
    mined = json.loads((tmp_path / "m" / "seeds" / NEGATIVES_FILE).read_text())
    for rows in encoded:
        assert [len(one.sequences) - 1 for one in rows] == [
            len(one["numbers"]) for one in mined["train"]
        ]
    queries = {(one.sequences[0].ids[1], one.sequences[1].ids[1]) for one in encoded[0]}
    assert len(queries) == 1  # the prompts


def test_negatives_reach_the_batches_and_are_told(encoder, tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("query,passage\n" + "".join(f"{q},{p}\n" for q, p in ROWS))
    words = ["finetune", "embed", "--train", path, "--model", encoder, "--output", tmp_path / "m"]
    assert main([*map(str, words), "--negatives", "mine", "--epochs", "1", "--device", "cpu"]) == 0
    told = capsys.readouterr().err
    assert "pairs.csv: mined " in told
    assert "whose cosine isn't 5 % lower than that of a row's own passage, by" in told


@pytest.mark.parametrize("negatives", ["file", "mine"])
def test_no_answer_of_a_held_out_query_is_a_negative(encoder, tmp_path, capsys, negatives):
    train = [
        {"query": q, "passage": p, "negative": ROWS[n - 6][1]} for n, (q, p) in enumerate(ROWS)
    ]
    held_out = [{"query": f"{q} .", "passage": p.upper()} for q, p in ROWS[:4]]
    settings = {"negatives": negatives, "negative_margin": 0.0, "epochs": 1, "device": "cpu"}
    output = tmp_path / "m"
    bertkit.finetune("embed", train=train, dev=held_out, model=encoder, output=output, **settings)
    assert "4 negatives left out, since they answer held-out queries" in capsys.readouterr().err
    if negatives == "mine":
        answers = {row["passage"].lower() for row in held_out}
        own = [(row["passage"], *({row["negative"]} - answers)) for row in train]
        passages = list(dict.fromkeys([*chain(*own), *(row["passage"] for row in held_out)]))
        mined = json.loads((output / "run" / NEGATIVES_FILE).read_text())
        pairs = zip(own, mined["train"], strict=True)
        new = [passages[n] for texts, one in pairs for n in one["numbers"][len(texts) :]]
        assert new
        assert answers.isdisjoint(new)


def test_pairs_with_scores_have_no_negatives(encoder, tmp_path):
    texts = [dict(zip(("text1", "text2"), row, strict=True)) for row in ROWS]
    rows = [{**pair, "score": number} for number, pair in enumerate(texts)]
    with pytest.raises(InputError, match="for which there are no negatives to mine"):
        bertkit.finetune("embed", train=rows, model=encoder, output=tmp_path, negatives="mine")
