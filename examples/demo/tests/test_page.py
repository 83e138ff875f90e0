"""The demo's report says what was measured, whoever wins."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.closeness import close

from bertkit.reports.report import Bars, Charts, render_report
from bertkit.training.history import TrainingHistory
from bertkit_demo.page import Accuracies, DemoFacts, Example, build_report, describe_result

ACCURACIES = Accuracies(
    num_masked=9876,
    model=0.124,
    neighbors=0.101,
    most_frequent=0.05,
    most_frequent_token="the",
)
LOG = [
    {"event": "eval", "step": 0, "mlm_loss": 9.0, "mlm_accuracy": 0.0, "nsp_accuracy": 0.5},
    *(
        {
            "event": "train",
            "step": step,
            "mlm_loss": 9.0 - step / 250,
            "mlm_accuracy": 0.1,
            "nsp_accuracy": 0.5,
            "tokens_per_second": 1000.0,
            "elapsed_seconds": step / 2,
        }
        for step in range(1, 251)
    ),
    {"event": "eval", "step": 250, "mlm_loss": 8.0, "mlm_accuracy": 0.1, "nsp_accuracy": 0.6},
]
FACTS = DemoFacts(
    accuracies=ACCURACIES,
    examples=[Example("Return the [MASK].", "##qu 0.1 %", "value 20.0 %")],
    history=TrainingHistory.from_rows(LOG),
    settings={"Pre-training": {"size": "mini", "steps": None}},
    corpus={"documents": 4321},
    run=Path("demo/run"),
)


def test_the_page_holds_the_result_the_examples_and_the_way_on():
    html = render_report(build_report(FACTS)).replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "for 2.1 minutes",
        "12.4 %",
        "10.1 %",
        "5.0 %",
        "9,876 masked tokens",
        "Return the [MASK].",
        "value 20.0 %",
        "4,321",
        "bertkit fill-mask --model demo/run",
        "<td>none</td>",
    ):
        assert words in html, words


@pytest.mark.parametrize(
    ("neighbors", "words"), [(0.101, "The model is better than"), (0.2, "Still better is")]
)
def test_whoever_wins_is_named(neighbors, words):
    text = describe_result(replace(ACCURACIES, neighbors=neighbors))
    assert words in text
    assert "2.5 times as many as always predicting “the”" in text


def test_bars_are_the_three_accuracies():
    [bars] = [part for part in build_report(FACTS).sections if isinstance(part, Bars)]
    assert [bar.share for bar in bars.bars] == [0.124, 0.101, 0.05]
    assert [bar.is_highlighted for bar in bars.bars] == [True, False, False]


def test_training_curves_are_means_and_held_out_ones_are_the_evaluations():
    [charts] = [part for part in build_report(FACTS).sections if isinstance(part, Charts)]
    training, held_out = charts.charts[0].series
    assert list(held_out.points) == [(0, 9.0), (250, 8.0)]
    assert len(training.points) == 84
    assert training.points[0] == (3, close(9.0 - 2 / 250))
    assert training.points[-1] == (250, close(8.0 + 2 / 250))


def test_the_bundled_model_has_a_column_if_it_was_there():
    assert "Bundled model" not in render_report(build_report(FACTS))
    examples = [replace(FACTS.examples[0], bundled="list 33.0 %")]
    html = render_report(build_report(replace(FACTS, examples=examples))).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "Bundled model" in html
    assert "list 33.0 %" in html
