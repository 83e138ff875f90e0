"""All studies hold together: files, arms, measures, claims, settings."""

import importlib
from pathlib import Path

import pytest

from bertkit.base.errors import SettingsError
from bertkit.base.settings import validate
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit_studies.probes.pretraining import PretrainingStudy
from bertkit_studies.probes.probes import BEST_EPOCH
from bertkit_studies.probes.text_tasks import TASK_WRITERS
from bertkit_studies.settings import PretrainingSettings
from bertkit_studies.study import Study
from bertkit_studies.table import STUDIES

OF_PRETRAINING = [name for name in STUDIES if STUDIES[name].settings is PretrainingSettings]


def build(name: str, size: str = "small", **changes) -> PretrainingStudy:
    study = STUDIES[name].load()(PretrainingSettings(data=Path("shards"), size=size, **changes))
    assert isinstance(study, PretrainingStudy)
    return study


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_a_file_and_a_class_of_its_name(name):
    kind = STUDIES[name].load()
    assert issubclass(kind, Study)
    assert kind.name == name
    assert kind.__module__ == f"bertkit_studies.experiments.{name.replace('-', '_')}"
    assert importlib.import_module(kind.__module__).__doc__
    for words in (kind.question, kind.finding, kind.budget, kind.caution):
        assert words.endswith((".", "?"))


@pytest.mark.parametrize("name", OF_PRETRAINING)
def test_what_chooses_the_best_epoch_is_told(name):
    assert BEST_EPOCH in STUDIES[name].load().caution


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("name", OF_PRETRAINING)
def test_arms_measures_and_claims_know_each_other(name, size):
    study = build(name, size)
    arms = {arm.name: arm for arm in study.arms}
    measures = {measure.name for measure in study.measures}
    assert len(arms) == len(study.arms)
    assert STUDIES[name].arm in arms
    assert all(name == Path(name).name for name in arms)
    for claim in study.claims:
        assert {claim.better.arm, claim.worse.arm} <= arms.keys()
        assert claim.measure in measures
        assert (claim.better, claim.worse) != (claim.worse, claim.better)
    for arm in study.arms:
        assert arm.pretrained in arms
        assert arms[arm.pretrained].shares is None
        assert isinstance(study.choose(arm, 1, 80), PretrainSettings)
        study.scale.fine_tuning.choose(1, "cpu", arm.fine_tuning)
    assert {probe.task for probe in study.probes} <= TASK_WRITERS.keys()


@pytest.mark.parametrize("name", OF_PRETRAINING)
def test_labeled_examples_are_one_more_measure(name):
    without, with_ = build(name), build(name, labeled=Path("train.csv"))
    added = [measure.name for measure in with_.measures if measure not in without.measures]
    assert added == ["labeled"]


def test_arms_that_are_told_apart_differ_in_what_is_learned():
    for name in OF_PRETRAINING:
        study = build(name)
        learned = {
            (study.choose(arm, 0, 80).model_dump_json(), arm.starts_from, arm.token_share)
            for arm in study.arms
            if arm.shares is None
        }
        assert len(learned) == sum(arm.shares is None for arm in study.arms)


@pytest.mark.parametrize("size", ["small", "large"])
def test_larger_models_are_fine_tuned_at_lower_rates(size):
    rates = {arm.name: arm.fine_tuning["learning_rate"] for arm in build("size", size).arms}
    assert list(rates.values()) == sorted(rates.values(), reverse=True)
    assert rates["tiny"] > rates["mini"] == build("features", size).scale.fine_tuning.learning_rate


def test_held_out_labels_alone_are_refused():
    with pytest.raises(SettingsError, match="labeled_dev needs labeled"):
        validate(PretrainingSettings, {"data": "a", "labeled_dev": "b"}, "flags")


def test_two_budgets_are_refused():
    with pytest.raises(SettingsError, match="give one budget, not tokens and minutes"):
        validate(PretrainingSettings, {"data": "a", "tokens": 1, "minutes": 1}, "flags")


def test_a_course_keeps_the_checkpoints_that_are_measured():
    study = build("steps")
    [arm] = study.arms
    settings = study.choose(arm, 0, 83)
    assert (settings.steps, settings.checkpoint_every) == (83, 11)
    assert settings.keep >= 8
    single = build("masking")
    assert single.choose(single.arms[0], 0, 83).checkpoint_every is None
