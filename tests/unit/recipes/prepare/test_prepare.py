"""The same bytes whatever the workers and the interruptions, and nothing lost or mixed."""

import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.tokenizer_folders import make_tokenizer

from bertkit.base import local_workers
from bertkit.base.errors import InputError, ResumeError, SettingsError, StoppedError
from bertkit.base.parts import WorkersSettings
from bertkit.data.shards import ShardSet
from bertkit.recipes.prepare import plan, run, work_unit
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.settings import PrepareSettings
from bertkit.tokenization.tokenizer import Tokenizer

SETTINGS = PrepareSettings(held_out=0.2)
ONE, TWO = WorkersSettings(workers=1), WorkersSettings(workers=2)


def contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def texts(folder: Path, split: str) -> list[list[str]]:
    """The documents of a split, as their sentences decoded."""
    shards = ShardSet.open(folder)
    tokenizer = Tokenizer.load(folder / "tokenizer")
    documents = []
    for shard in getattr(shards, split):
        starts = shard.sentence_offsets.tolist()
        for first, last in zip(shard.document_offsets, shard.document_offsets[1:], strict=False):
            places = range(int(first), int(last))
            documents.append(
                [tokenizer.decode(shard.tokens(starts[i], starts[i + 1])) for i in places]
            )
    return documents


@pytest.mark.parametrize("workers", [ONE, TWO])
def test_text_in_another_encoding_is_refused_and_leaves_nothing(
    corpus, tokenizer, tmp_path, workers, monkeypatch
):
    monkeypatch.setattr(plan, "UNIT_BYTES", 1)
    book = corpus / "book.txt"
    book.write_bytes("A cat.\nA garçon.\n\n".encode("latin-1") * 9)
    with pytest.raises(InputError, match=r"9 of 27 lines .*/book\.txt:2, byte 6 \(0xE7\)"):
        prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=workers)
    assert not (tmp_path / "out" / "plan.json").exists()
    named = PrepareSettings(held_out=0.2, encoding="latin-1")
    result = prepare([str(corpus)], tokenizer, tmp_path / "out", named, workers=workers)
    assert "invalid-utf8" not in result.manifest.report.counts


@pytest.mark.parametrize("kind", ["roberta", "modernbert", "xlm-roberta", "mpnet"])
def test_sentences_of_each_kind_of_tokenizer_join_to_their_document(tmp_path, kind):
    document = "All human beings are born free. They are equal. 人人生而自由。在尊严。"
    source = tmp_path / "text.txt"
    source.write_text(f"{document}\n\n" * 40)
    folder = make_tokenizer(tmp_path / kind, kind)
    prepare([str(source)], folder, tmp_path / "out", SETTINGS, workers=ONE)
    tokenizer = Tokenizer.load(folder)
    (shard,) = ShardSet.open(tmp_path / "out").train
    starts = shard.sentence_offsets[shard.document_offsets]
    assert shard.document_offsets[1] == 4
    first = shard.tokens(int(starts[0]), int(starts[1])).tolist()
    written = document.replace("。在", "。 在")  # a blank between sentences, as in other scripts
    assert tokenizer.decode(first) == tokenizer.decode(tokenizer.piece_ids([written])[0])


def test_what_goes_in_comes_out(corpus, tokenizer, tmp_path):
    result = prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=ONE)
    found = texts(tmp_path / "out", "train") + texts(tmp_path / "out", "held_out")
    expected = [
        [f"file {file} has document {n}.", "it goes on.", "and it ends here."]
        for file in "abcdef"
        for n in range(20)
    ]
    assert sorted(found) == sorted(expected)
    counts = result.manifest.train + result.manifest.held_out
    assert (counts.documents, counts.sentences) == (120, 360)
    assert 10 <= result.manifest.held_out.documents <= 40
    assert result.manifest.raw_bytes == sum(
        len(line) for path in corpus.iterdir() for line in path.read_text().splitlines()
    )
    shards = ShardSet.open(tmp_path / "out", verify="all")
    tokens = np.concatenate([shard.tokens(0, shard.num_tokens) for shard in shards.train])
    np.testing.assert_array_equal(shards.token_counts, np.bincount(tokens, minlength=79))
    assert result.report == []


def test_lines_are_sentences_where_that_is_asked(corpus, tokenizer, tmp_path):
    settings = PrepareSettings(held_out=0.2, sentences="lines")
    result = prepare([str(corpus)], tokenizer, tmp_path / "out", settings, workers=ONE)
    assert (result.manifest.train + result.manifest.held_out).sentences == 240
    assert texts(tmp_path / "out", "train")[0][0] == "file a has document 0. it goes on."


def test_held_out_inputs_are_held_out_whole(corpus, tokenizer, tmp_path):
    settings = PrepareSettings(held_out=0)
    chosen = sorted(corpus.iterdir())[:2]
    out = tmp_path / "out"
    prepare([str(corpus)], tokenizer, out, settings, held_out_inputs=[str(chosen[0])], workers=TWO)
    held_out = {sentences[0].split()[1] for sentences in texts(out, "held_out")}
    trained = {sentences[0].split()[1] for sentences in texts(out, "train")}
    assert (held_out, trained) == ({"a"}, set("bcdef"))
    others = [str(path) for path in chosen]
    with pytest.raises(ResumeError, match=r"b\.txt has changed"):
        prepare([str(corpus)], tokenizer, out, settings, held_out_inputs=others, workers=ONE)


def test_any_number_of_workers_gives_the_same_bytes(corpus, tokenizer, tmp_path):
    for workers in (ONE, TWO):
        output = tmp_path / f"out{workers.workers}"
        prepare([str(corpus)], tokenizer, output, SETTINGS, workers=workers)
    one, two = contents(tmp_path / "out1"), contents(tmp_path / "out2")
    assert one == two
    assert "manifest.json" in one
    assert sum(name.endswith(".tokens.npy") for name in one) == 6


def test_a_finished_unit_is_not_done_again_unless_it_was_damaged(
    corpus, tokenizer, tmp_path, monkeypatch
):
    output = tmp_path / "out"
    prepare([str(corpus)], tokenizer, tmp_path / "whole", SETTINGS, workers=ONE)

    def stop(*rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "write_manifest", stop)
    with pytest.raises(StoppedError, match="3 of 3 parts done; run the same command"):
        prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE)
    monkeypatch.undo()
    monkeypatch.setattr(plan, "UNIT_BYTES", 3000)
    damaged = output / "parts" / "train-00001-000.tokens.npy"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    done: list[int] = []
    prepare_unit = work_unit.prepare_unit

    def note(output, number, *rest):
        done.append(number)
        prepare_unit(output, number, *rest)

    monkeypatch.setattr(work_unit, "prepare_unit", note)
    prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE)
    assert done == [1]
    assert contents(output) == contents(tmp_path / "whole")


def test_a_finished_folder_is_left_alone(corpus, tokenizer, tmp_path):
    output = tmp_path / "out"
    assert not prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE).was_done

    def times() -> dict[Path, int]:
        paths = set(output.rglob("*")) - {output / ".lock"}
        return {path: path.stat().st_mtime_ns for path in paths}

    before = times()
    assert prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE).was_done
    assert times() == before


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("parts/train-00001-000.tokens.npy", None),
        ("parts/train-00001-000.sentences.npy", -8),
        ("token_counts.npy", None),
        ("tokenizer/vocab.txt", -2),
        ("tokenizer/vocab.txt", 5),
    ],
)
def test_what_is_missing_from_a_finished_folder_is_made_again(
    corpus, tokenizer, tmp_path, capsys, name, cut
):
    output = tmp_path / "out"
    prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE)
    before = contents(output)
    if cut is None:
        (output / name).unlink()
    else:
        (output / name).write_bytes(before[name][:cut])
    result = prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE)
    assert not result.was_done
    assert contents(output) == before
    assert f"Preparing {output} again: {output / name.split('/')[0]}" in capsys.readouterr().err


def test_other_work_is_refused_and_the_differences_are_named(corpus, tokenizer, tmp_path):
    output = tmp_path / "out"
    prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE)
    before = contents(output)

    def refused(message: str, settings: PrepareSettings = SETTINGS, *inputs: str) -> None:
        with pytest.raises(ResumeError, match=message):
            prepare(inputs or [str(corpus)], tokenizer, output, settings, workers=ONE)

    refused(r"--held-out 0\.2 → 0\.1; --seed 0 → 5", PrepareSettings(held_out=0.1, seed=5))
    reverse = [str(path) for path in sorted(corpus.iterdir(), reverse=True)]
    refused("inputs in a different order", SETTINGS, *reverse)
    refused(r"corpus/a\.txt is missing; corpus/b\.txt is missing; .*; 2 more", SETTINGS, reverse[0])
    (corpus / "a.txt").write_text("other")
    (corpus / "g.txt").write_text("new")
    refused(r"corpus/g\.txt is new; corpus/a\.txt has changed")
    assert contents(output) == before


def test_another_tokenizer_is_refused(corpus, tokenizer, tmp_path):
    output = tmp_path / "out"
    prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE)
    entries = (tokenizer / "vocab.txt").read_text() + "zz\n"
    (tmp_path / "vocab.txt").write_text(entries)
    with pytest.raises(ResumeError, match="a different tokenizer"):
        prepare([str(corpus)], tmp_path / "vocab.txt", output, SETTINGS, workers=ONE)


def test_a_folder_of_something_else_is_refused(corpus, tokenizer, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").touch()
    for output in (other, other / "a.txt"):
        with pytest.raises(ResumeError, match="holds other files"):
            prepare([str(corpus)], tokenizer, output, SETTINGS, workers=ONE)


@pytest.mark.parametrize("name", ["tokenizer", "parts", "units"])
def test_what_the_user_has_under_a_name_of_ours_is_kept(corpus, tokenizer, tmp_path, name):
    output = tmp_path / "run"
    output.mkdir()
    tokenizer.rename(output / name)
    (output / name / "training.json").write_text("{}")
    before = contents(output)
    with pytest.raises(ResumeError, match=r"run holds other files; choose another --output"):
        prepare([str(corpus)], output / name, output, SETTINGS, workers=ONE)
    assert contents(output) == before


def test_shards_are_written_when_full(corpus, tokenizer, tmp_path, monkeypatch):
    prepare([str(corpus)], tokenizer, tmp_path / "large", SETTINGS, workers=ONE)
    monkeypatch.setattr(work_unit, "SHARD_TOKENS", 200)
    prepare([str(corpus)], tokenizer, tmp_path / "small", SETTINGS, workers=ONE)
    shards = ShardSet.open(tmp_path / "small", verify="all")
    assert len(shards.train) > 15
    assert max(shard.num_tokens for shard in shards.train) < 300
    for split in ("train", "held_out"):
        assert texts(tmp_path / "small", split) == texts(tmp_path / "large", split)


def test_the_split_is_a_pure_function_near_its_share():
    settings = PrepareSettings(held_out=0.1)
    groups = [f"corpus/a.txt#{number}" for number in range(5000)]
    held_out = [g for g in groups if work_unit.choose_split(g, settings) == "held-out"]
    assert 400 < len(held_out) < 600
    assert held_out == [g for g in groups if work_unit.choose_split(g, settings) == "held-out"]
    other = PrepareSettings(held_out=0.1, seed=1)
    assert held_out != [g for g in groups if work_unit.choose_split(g, other) == "held-out"]
    more = PrepareSettings(held_out=0.2)
    assert {g for g in groups if work_unit.choose_split(g, more) == "held-out"} > set(held_out)
    assert {work_unit.choose_split(g, PrepareSettings(held_out=0)) for g in groups} == {"train"}


def test_outcomes_of_tokens_are_counted(tokenizer, tmp_path):
    (tmp_path / "in.txt").write_text("one sentence.\n\n\u200b\n\ntwo here. and there.\n")
    settings = PrepareSettings(held_out=0.0001)
    result = prepare([str(tmp_path / "in.txt")], tokenizer, tmp_path / "out", settings)
    assert result.manifest.report.counts == {
        "one-sentence": 1,
        "empty-document": 1,
        "cut-documents": 1,
    }
    assert result.manifest.train.documents == 2
    assert len(result.report) == 3


@pytest.mark.parametrize(
    ("num_documents", "num_sentences", "share", "num_held_out"),
    [
        (2, 100, 0.02, 4),  # two sentences of each
        (2, 100, 0.001, 2),  # one of each
        (7, 3, 0.001, 7),
        (8, 3, 0.001, 6),  # two documents
        (40, 3, 0.001, 6),
        (3, 1, 0.001, 2),  # one is left to train on
        (2, 1, 0.001, 1),
        (1, 2, 0.001, 1),
    ],
)
def test_the_end_of_the_text_is_held_out_if_no_document_was_drawn(
    tokenizer, tmp_path, num_documents, num_sentences, share, num_held_out
):
    documents = [
        "".join(f"file {n} has document {m}.\n" for m in range(num_sentences))
        for n in range(num_documents)
    ]
    (tmp_path / "in.txt").write_text("\n".join(documents))
    # With this seed, nothing is drawn.
    settings = PrepareSettings(held_out=share, sentences="lines", seed=1)
    out = tmp_path / "out"
    result = prepare([str(tmp_path / "in.txt")], tokenizer, out, settings, workers=ONE)
    assert result.manifest.held_out.sentences == num_held_out
    assert result.manifest.train.sentences == num_documents * num_sentences - num_held_out
    assert set(result.manifest.report.counts) & {"cut-documents", "last-documents"}
    every = [sentence for text in documents for sentence in text.splitlines()]
    found = [one for split in ("train", "held_out") for doc in texts(out, split) for one in doc]
    assert sorted(found) == sorted(every)
    shards = ShardSet.open(out, verify="all")
    tokens = np.concatenate([shard.tokens(0, shard.num_tokens) for shard in shards.train])
    np.testing.assert_array_equal(
        shards.token_counts, np.bincount(tokens, minlength=len(shards.token_counts))
    )
    parts = {path.name.split(".")[0] for path in (out / "parts").iterdir()}
    assert parts == {shard.name for shard in result.manifest.shards}
    whole = contents(out)
    assert prepare([str(tmp_path / "in.txt")], tokenizer, out, settings).was_done
    (out / "parts" / f"{result.manifest.shards[0].name}.tokens.npy").unlink()
    prepare([str(tmp_path / "in.txt")], tokenizer, out, settings, workers=ONE)
    assert contents(out) == whole


def test_a_text_that_cant_be_divided_is_refused_and_leaves_nothing(tokenizer, tmp_path):
    (tmp_path / "in.txt").write_text("it goes on.\n")
    with pytest.raises(InputError, match="has 1 sentence in 1 document, which is too little"):
        prepare([str(tmp_path / "in.txt")], tokenizer, tmp_path / "out", SETTINGS)
    assert not (tmp_path / "out").exists()


def test_holding_out_nothing_is_refused(corpus, tokenizer, tmp_path):
    with pytest.raises(SettingsError, match="--held-out 0 there is no text to evaluate"):
        prepare([str(corpus)], tokenizer, tmp_path / "out", PrepareSettings(held_out=0))


def test_other_settings_replace_the_shards_if_that_is_asked(corpus, tokenizer, tmp_path):
    out, more = tmp_path / "out", PrepareSettings(held_out=0.5)
    prepare([str(corpus)], tokenizer, out, SETTINGS, workers=ONE)
    with pytest.raises(ResumeError, match=r"--held-out 0\.2 → 0\.5.* with --overwrite"):
        prepare([str(corpus)], tokenizer, out, more, workers=ONE)
    prepare([str(corpus)], tokenizer, out, more, workers=ONE, overwrite=True)
    prepare([str(corpus)], tokenizer, tmp_path / "fresh", more, workers=ONE)
    assert contents(out) == contents(tmp_path / "fresh")
    assert prepare([str(corpus)], tokenizer, out, more, overwrite=True).was_done


def test_no_text_at_all_is_an_error_with_its_reason(tokenizer, tmp_path):
    (tmp_path / "in.txt").write_text("")
    with pytest.raises(InputError, match="no text to train on; files without text: 1; skipped"):
        prepare([str(tmp_path / "in.txt")], tokenizer, tmp_path / "out", SETTINGS)


def test_a_killed_worker_is_said_so_and_the_same_call_goes_on(
    corpus, tokenizer, tmp_path, monkeypatch
):
    killed = []

    def kill_one(*arguments, **options):
        if not killed and (children := multiprocessing.active_children()):
            os.kill(children[0].pid, signal.SIGKILL)
            killed.append(True)
        return wait(*arguments, **options)

    wait = local_workers.wait
    monkeypatch.setattr(local_workers, "wait", kill_one)
    with pytest.raises(StoppedError, match=r"worker process was killed.*the same command resumes"):
        prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=TWO)
    assert not multiprocessing.active_children()
    prepare([str(corpus)], tokenizer, tmp_path / "out", SETTINGS, workers=ONE)
    prepare([str(corpus)], tokenizer, tmp_path / "whole", SETTINGS, workers=ONE)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_held_out_documents_do_not_depend_on_the_folder(corpus, tokenizer, tmp_path):
    (other := tmp_path / "elsewhere" / "named otherwise").mkdir(parents=True)
    for path in corpus.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    found = []
    for number, inputs in enumerate(
        ([corpus], [other], sorted(corpus.iterdir()), [f"{other}/*.txt"])
    ):
        output = tmp_path / f"shards-{number}"
        prepare([str(each) for each in inputs], tokenizer, output, SETTINGS, workers=ONE)
        found.append(texts(output, "held_out"))
    assert found[0]
    assert found == [found[0]] * 4
    with_more = [str(corpus), str(other)]  # the same files again: the same draw
    prepare(with_more, tokenizer, tmp_path / "both", SETTINGS, workers=ONE)
    assert sorted(texts(tmp_path / "both", "held_out")) == sorted(found[0] * 2)
