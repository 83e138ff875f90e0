"""What a user is told of a model that seems finished."""

import math

import pytest
from tests.unit.decoders.seq2seq.small import (
    QUICK,
    SHORT,
    make_pairs,
    open_job,
    save_encoder,
    write_sides,
)
from tests.unit.inference.small_causal import save_causal

from bertkit.base.errors import CheckpointError
from bertkit.decoders.commands.finetune import describe_pairs
from bertkit.decoders.generation.seq2seq_generator import GenerationCounts
from bertkit.decoders.metrics import measure_translation
from bertkit.decoders.seq2seq.examples import (
    PairFiles,
    warn_of_best_step,
    warn_of_ends,
    warn_of_metric,
)
from bertkit.decoders.seq2seq.run import train_seq2seq

WARM = {"layers": None, "hidden_size": None, "heads": None, "vocab_size": 6000}


def test_a_metric_that_can_not_tell_is_not_taken_for_a_model_that_learned_nothing():
    right = measure_translation(["eins zwei"] * 2, ["eins zwei"] * 2)
    (line,) = warn_of_metric("bleu", right, {"bleu": 0.0}, lambda: right)
    assert line.startswith(
        "bleu is uninformative here: the references themselves have 0; it counts"
    )
    (line,) = warn_of_metric("bleu", {"bleu": 3.0}, {"bleu": 4.0}, lambda: {"bleu": 100.0})
    assert "bleu (3.0) isn't above that of copying" in line


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ((0.0, 0.0, 0.0), True),
        ((0.5, 0.2, 0.2, 0.2), True),
        ((0.0, 0.0), False),  # a single step could be chosen
        ((0.0, 0.0, 0.1), False),
        ((0.0, math.nan, math.nan), False),
        ((), False),
    ],
)
def test_evaluations_that_were_all_alike_are_told(values, is_told):
    assert bool(list(warn_of_best_step("bleu", values))) is is_told


def test_answers_without_an_end_are_told_where_they_are_many():
    assert not list(warn_of_ends(GenerationCounts(texts=100, unfinished=2)))
    (line,) = warn_of_ends(GenerationCounts(texts=100, unfinished=3))
    assert line.startswith("3 of 100 answers had no end")


def test_an_encoder_without_capitals_is_told_when_the_run_begins(tmp_path, capsys):
    save_encoder(tmp_path / "encoder")
    pairs = write_sides(
        tmp_path, "pairs", [(one, f"{two.upper()} für") for one, two in make_pairs(9, 1)]
    )
    settings = QUICK.model_copy(update={"model": str(tmp_path / "encoder"), **WARM})
    open_job(PairFiles(pairs, pairs), settings)
    told = "the vocabulary has no capital letters and no accents, which the references have"
    assert told in capsys.readouterr().err


def test_an_encoder_that_reads_left_to_right_is_refused_with_a_way_on(files, tmp_path):
    save_causal(tmp_path / "causal")
    settings = QUICK.model_copy(update={"model": str(tmp_path / "causal"), **WARM})
    with pytest.raises(CheckpointError, match="both halves start from a bidirectional encoder"):
        open_job(files, settings)


def test_short_texts_are_learned_by_their_loss(tmp_path):
    pairs = [(one.split()[0], two.split()[0]) for one, two in make_pairs(60, 1)]
    files = PairFiles(write_sides(tmp_path, "train", pairs), write_sides(tmp_path, "dev", pairs))
    result = train_seq2seq(files, tmp_path / "out", SHORT)
    assert result.saved.best_step == 12
    _, first, *_, last = describe_pairs(result).splitlines()
    assert first.startswith("bleu is uninformative here")
    assert last.startswith("bleu was 0 at each of 3 evaluations")
