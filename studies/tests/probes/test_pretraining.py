"""What a study of pre-training decides before its first run."""

import math
from types import SimpleNamespace

import pytest
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.base.settings import validate
from bertkit.training.budget import StepPace
from bertkit_studies.experiments.bidirectional import Bidirectional
from bertkit_studies.experiments.masking import Masking
from bertkit_studies.experiments.recipe import TrainingRecipes
from bertkit_studies.probes import pretraining
from bertkit_studies.probes.downstream import MAX_LENGTH
from bertkit_studies.probes.pretraining import PretrainingStudy
from bertkit_studies.settings import PretrainingSettings
from bertkit_studies.table import STUDIES

TOKENS_PER_STEP = 700 / 32
SLOW, QUICK = 3.0, 1.0


def build(**changes) -> Bidirectional:
    values = {"data": "shards", "device": "cpu", **changes}
    return Bidirectional(validate(PretrainingSettings, values, "flags"))


def measure(data, settings) -> SimpleNamespace:
    """A dry run of a machine on which one of the two objectives takes longer."""
    seconds = SLOW if settings.objective == "mlm" else QUICK
    if settings.minutes is None:
        num_steps = math.ceil(settings.tokens / TOKENS_PER_STEP)
    else:
        num_steps = int(60 * settings.minutes / seconds)
    pace = StepPace(seconds, 1.0, TOKENS_PER_STEP, 1.0, 1)
    return SimpleNamespace(num_steps=num_steps, seconds=num_steps * seconds, pace=pace)


@pytest.mark.parametrize(
    ("budget", "steps", "warm_steps"),
    [
        ({"tokens": 4_910}, math.ceil(4_910 / TOKENS_PER_STEP), math.ceil(737 / TOKENS_PER_STEP)),
        ({"minutes": 10}, 600 // SLOW, 600 // SLOW * 0.15),
    ],
)
def test_arms_take_as_many_steps_as_their_tokens_need(monkeypatch, budget, steps, warm_steps):
    monkeypatch.setattr(pretraining, "dry_run", measure)
    monkeypatch.setattr(pretraining.ShardSet, "open", lambda folder: None)
    monkeypatch.setattr(pretraining, "find_tasks", lambda names, shards, counts: {"gaps": 24})
    values = build(**budget).decide().values
    assert {name: value for name, value in values.items() if name.startswith("steps of")} == {
        "steps of both-directions": steps,
        "steps of left-to-right": steps,
        "steps of both-directions+warm": steps,
        "steps of left-to-right+warm": warm_steps,
    }
    assert (values["tasks"], values["held-out examples of gaps"]) == ("gaps", 24)
    assert values["tokens of pre-training"] == budget.get("tokens", int(steps * TOKENS_PER_STEP))


def test_arms_that_score_more_words_are_measured_for_themselves(monkeypatch):
    measured = []

    def measure_rate(data, settings):
        measured.append(settings.mask_rate)
        return measure(data, settings)

    monkeypatch.setattr(pretraining, "dry_run", measure_rate)
    monkeypatch.setattr(pretraining.ShardSet, "open", lambda folder: None)
    monkeypatch.setattr(pretraining, "find_tasks", lambda names, shards, counts: {"gaps": 24})
    Masking(validate(PretrainingSettings, {"data": "shards", "device": "cpu"}, "")).decide()
    assert measured == [0.15, 0.25, 0.40]


@pytest.mark.parametrize("budget", [{"tokens": 4_910}, {"minutes": 10}])
def test_arms_of_equal_time_take_more_steps_where_a_step_is_quicker(monkeypatch, budget):
    monkeypatch.setattr(pretraining, "dry_run", measure)
    monkeypatch.setattr(pretraining.ShardSet, "open", lambda folder: None)
    values = {"data": "shards", "device": "cpu", **budget}
    steps = TrainingRecipes(validate(PretrainingSettings, values, "flags")).decide().values
    of_paper = int(steps["steps of paper"])
    assert of_paper == math.ceil(budget["tokens"] / TOKENS_PER_STEP if "tokens" in budget else 600)
    for arm in ("words-alone", "mask-40", "muon"):  # `measure` calls these slow
        assert int(steps[f"steps of {arm}"]) == close(of_paper * QUICK / SLOW, within=1)


def test_labeled_examples_are_counted_before_anything_is_trained(monkeypatch, tmp_path):
    monkeypatch.setattr(pretraining, "dry_run", measure)
    monkeypatch.setattr(pretraining.ShardSet, "open", lambda folder: None)
    monkeypatch.setattr(pretraining, "find_tasks", lambda names, shards, counts: {})
    path = tmp_path / "labeled.csv"
    path.write_text("text,label\n" + "".join(f"t{number},{number % 2}\n" for number in range(50)))
    values = build(tokens=1_000, labeled=path).decide().values
    assert values["tasks"] == ""
    assert values["held-out examples of labeled"] == 5
    path.write_text("text,label\nalone,0\n")
    with pytest.raises(InputError):
        build(tokens=1_000, labeled=path).decide()


def test_a_study_that_has_nothing_to_measure_is_refused(monkeypatch):
    monkeypatch.setattr(pretraining, "dry_run", measure)
    monkeypatch.setattr(pretraining.ShardSet, "open", lambda folder: None)
    monkeypatch.setattr(pretraining, "find_tasks", lambda names, shards, counts: {})
    with pytest.raises(InputError, match="no task to measure the arms of bidirectional by"):
        build().decide()
    words = validate(PretrainingSettings, {"data": "shards", "device": "cpu"}, "")
    assert Masking(words).decide().values["tasks"] == ""


@pytest.mark.parametrize("entry", STUDIES.values(), ids=STUDIES)
def test_encoders_learn_as_many_places_as_are_read_afterwards(entry):
    study = entry.load()
    if issubclass(study, PretrainingStudy):
        lengths = {scale.pretraining["max_length"] for scale in study.scales.values()}
        assert lengths == {MAX_LENGTH}
