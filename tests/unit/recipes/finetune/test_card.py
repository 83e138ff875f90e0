import math
from dataclasses import replace

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard
from tests.unit.recipes.finetune.small import TASK

from bertkit.recipes.finetune.card import FineTuningFacts, build_card
from bertkit.recipes.finetune.data import SetCounts
from bertkit.recipes.finetune.evaluation import FinalEvaluation
from bertkit.recipes.finetune.result import build_page, summarize
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.recipes.model_card import plain
from bertkit.reports.report import render_report
from bertkit.reports.text import make_legible
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.evaluation import Evaluation, Mistake
from bertkit.training.history import TrainingHistory
from bertkit.training.record import RunRecord

HOSTILE = 'a"b: |\n</script>\x00`[x](y)`\ud800 \\'


def make_facts(labels=("bad", "good"), name="model", **changes) -> FineTuningFacts:
    numbers = {key: 0 for key in SetCounts.model_fields if key.startswith("num_")}
    numbers |= {"num_examples": 7, "num_broken": 1, "num_cut": 2}
    each = dict.fromkeys(labels, 3)
    counts = SetCounts(name=f"{name}.csv", sha256="0" * 64, labels=each, **numbers)
    evaluation = Evaluation(
        metrics={"accuracy": 0.75, "odd": math.nan},
        intervals={"accuracy": (0.5, 0.9), "odd": (math.nan, math.nan)},
        labels=labels,
        confusion={(number, number): 1 for number in range(len(labels))},
        confidences=np.array([0.5, 0.75, 1.0]),
        is_right=np.array([True, False, True]),
        mistakes=(Mistake("/home/me/dev.csv, line 3", f"the {name}", *labels[:2], 0.5),),
        warnings=(f"every prediction is {labels[0]!r}",),
    )
    task = Classify(TASK, labels)
    record = RunRecord(
        settings={"task": "classify", "model": f"/home/me/{name}/", "seed": 0, "pair": None},
        data_fingerprint="",
        model={},
        num_steps=9,
        versions={},
        source={"commit": None, "sha256": {"model.safetensors": "1" * 64}},
    )
    final = FinalEvaluation(task, [], evaluation, evaluation, {"accuracy": 0.5})
    saved = SavedFineTuning(
        task="classify",
        metric="accuracy",
        metrics=evaluation.metrics,
        intervals=evaluation.intervals,
        baseline=final.baseline,
        warnings=evaluation.warnings,
        num_steps=9,
        best_step=8,
        best_epoch=2.5,
        steps_per_epoch=3,
        has_ended_early=True,
        train=counts,
        dev=counts,
    )
    facts = FineTuningFacts(name, record, saved, final)
    return replace(facts, **changes)


def test_the_hub_reads_the_header():
    card = ModelCard(build_card(make_facts()))
    assert card.data.pipeline_tag == "text-classification"
    assert card.data.license is None
    assert card.data.base_model is None
    (result,) = card.data.eval_results
    assert (result.metric_type, result.metric_value) == ("accuracy", 0.75)
    assert result.dataset_name == "model.csv"


def test_a_model_of_the_hub_is_named_as_there():
    facts = make_facts()
    source = {"commit": "c0ffee", "sha256": {}}
    settings = {**facts.record.settings, "model": "owner/name"}
    record = facts.record.model_copy(update={"source": source, "settings": settings})
    text = build_card(replace(facts, record=record))
    assert ModelCard(text).data.base_model == "owner/name"
    assert "c0ffee" in text


def test_the_card_tells_what_was_met_and_what_came_of_it():
    text = build_card(make_facts())
    assert "| accuracy | 75.0 % | 50.0–90.0 % | 50.0 % |" in text
    assert "| odd | not defined |  |  |" in text
    assert "| broken rows, left out | 1 | 1 |" in text
    assert "| texts that were truncated | 2 | 2 |" in text
    assert "texts read in windows" not in text
    assert "![Confusion matrix](confusion_matrix.svg)" in text
    assert "**every prediction is 'bad'**" in text
    assert "To be filled in" in text
    assert "and ended early" in text
    assert "/home/me" not in text
    assert "Fine-tuned from model with bertkit" in text


def test_names_of_anyone_are_only_text():
    facts = make_facts(labels=(HOSTILE, f"{HOSTILE}2"), name=HOSTILE.replace("/", "-"))
    text = build_card(facts)
    text.encode()
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["model-index"][0]["results"][0]["dataset"]["name"].startswith('a"b: |\n')
    body = text.partition("\n# ")[2]
    assert "</script>" not in body
    assert "\\`\\[x\\]" in body
    assert all(line.count("|") >= 2 for line in body.splitlines() if line.startswith("|"))
    page = render_report(build_page(facts, TrainingHistory()))
    assert "</script>" not in page


@pytest.mark.parametrize(
    "name", ["\x7f\x85", "a\u2028--- b\u2029", "é 日本 😀", "- a: b", "\udc80"]
)
def test_any_file_name_is_a_name_in_the_header(name):
    text = build_card(make_facts(name=name))
    text.encode()
    (result,) = ModelCard(text).data.eval_results
    assert result.dataset_name == f"{make_legible(name)}.csv"


def test_a_folder_of_the_hubs_cache_is_named_without_the_folders_above_it():
    facts = make_facts()
    settings = {**facts.record.settings, "model": "/home/me/cache/snapshots/c0ffee"}
    source = {"commit": "c0ffee", "sha256": {}}
    record = facts.record.model_copy(update={"source": source, "settings": settings})
    text = build_card(replace(facts, record=record))
    assert "/home/me" not in text
    assert "base_model" not in text
    assert "Fine-tuned from c0ffee with" in text


def test_a_metric_for_each_of_many_labels_is_no_endless_card():
    facts = make_facts()
    metrics = {"accuracy": 0.75, **{f"f1 label {number}": 0.5 for number in range(300)}}
    evaluation = replace(facts.final.evaluation, metrics=metrics)
    text = build_card(replace(facts, final=replace(facts.final, evaluation=evaluation)))
    assert text.count("f1 label") == 2 * 99
    assert "… and 201 metrics more" in text


def test_a_cell_is_one_line():
    assert plain("a\nb |c <d> &\t*e*") == "a b \\|c &lt;d&gt; &amp; \\*e\\*"
    assert plain("a\u202eb\u2066c") == "a�b�c"


def test_many_labels_have_no_picture_and_a_short_table():
    labels = tuple(f"label {number}" for number in range(120))
    text = build_card(make_facts(labels=labels))
    assert "confusion_matrix.svg" not in text
    assert "… and 20 labels more" in text


def test_the_calibration_of_an_older_version_is_read():
    saved = make_facts().saved.model_dump()
    saved["calibration"] = {"value": 0.1, "num_bins": 15, "low": 0.0, "high": 0.2}
    older = {**saved, "calibration": {**saved["calibration"], "if_calibrated": 0.05}}
    assert SavedFineTuning.model_validate(older) == SavedFineTuning.model_validate(saved)


def test_training_that_improved_on_nothing_is_said():
    facts = make_facts()
    facts = replace(facts, saved=facts.saved.model_copy(update={"best_step": 0}))
    line = (
        "Training for 9 steps didn't improve on the initial linear classifier, which is the model"
    )
    assert f"{line} saved." in summarize(facts)
