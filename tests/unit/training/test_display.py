import io

from rich.console import Console

from bertkit.training import display
from bertkit.training.display import show_training

VALUES = {"loss": 2.5, "hits": 0.25, "tokens_per_second": 1234.0, "share_of_peak": 0.5}


def test_without_a_terminal_it_writes_plain_lines(capsys):
    with show_training(10, 0, {"hits": "right"}) as shown:
        shown.show_step(10, VALUES)
        shown.show_evaluation(10, {"loss": 2.0, "hits": 0.5})
        shown.say("careful [bold]")
    last_step, evaluation, event = capsys.readouterr().err.splitlines()
    beginning = "step 10/10  loss 2.500  right 25.0 %  tokens/s 1,234  machine use 50.0 %"
    assert last_step.startswith(beginning)
    assert evaluation == "step 10/10  loss 2.000  right 50.0 %  held-out"
    assert event == "careful [bold]"


def test_on_a_terminal_it_shows_a_table_and_the_time_left(monkeypatch):
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(display, "open_console", lambda: console)
    with show_training(10, 2, {"hits": "right"}) as shown:
        shown.show_step(3, VALUES)
        shown.show_evaluation(3, {"loss": 2.0, "hits": 0.5})
        shown.say("careful [bold]")
    text = output.getvalue()
    for expected in ("3/10", "left", "right", "25.0 %", "1,234", "held-out", "careful [bold]"):
        assert expected in text


def test_a_watched_metric_has_a_column_and_the_best_is_marked(capsys):
    with show_training(10, 0, {"hits": "right"}, "matthews") as shown:
        shown.show_evaluation(4, {"loss": 2.0, "matthews": -0.25}, is_best=True)
        shown.show_evaluation(8, {"loss": 2.0, "matthews": float("nan")})
    first, second = capsys.readouterr().err.splitlines()
    assert first == "step 4/10  loss 2.000  matthews -0.250  held-out, best so far"
    assert second == "step 8/10  loss 2.000  matthews not defined  held-out"


def test_the_best_evaluation_stays_on_a_terminal(monkeypatch):
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(display, "open_console", lambda: console)
    with show_training(10, 2, {"hits": "right"}) as shown:
        shown.show_evaluation(4, {"loss": 2.0, "hits": 0.75}, is_best=True)
        shown.show_evaluation(8, {"loss": 3.0, "hits": 0.5})
    rows = [line for line in output.getvalue().splitlines() if "best, step 4" in line]
    assert "75.0 %" in rows[-1]


def test_what_is_shown_is_smoothed(capsys):
    with show_training(2, 0, {}) as shown:
        shown.show_step(1, {"loss": 4.0})
        shown.show_step(2, {"loss": 2.0})
    line = capsys.readouterr().err.splitlines()[-1]
    assert "loss 2.97" in line  # 4 and 2, the newer one weighing slightly more
