"""A report tells what a run's files say, whatever state the run is in, and changes none of them."""

import json
from pathlib import Path

import pytest
from tests.unit.inference.small import save_run
from tests.unit.recipes.report.small import (
    NUM_STEPS,
    choose,
    eval_row,
    train_row,
    write_finetuned,
    write_log,
    write_run,
)

from bertkit.base.checksummed_json import write_checksummed_json
from bertkit.base.errors import (
    BertkitError,
    DamagedFileError,
    InputError,
    MissingFileError,
    SettingsError,
)
from bertkit.checkpoints.run_folder import METRICS_FILE
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.report.run import report, summarize_run
from bertkit.recipes.settings import ReportSettings
from bertkit.training.record import LOG_FILE, RECORD_FILE

HOSTILE = "</script><img src=x onerror=alert(1)>"


def render(*paths: Path, **settings) -> str:
    output = paths[0].parent / "page.html"
    page = report(paths, output, ReportSettings(overwrite=True, **settings)).report
    return page.read_text().replace("\N{NO-BREAK SPACE}", " ")


def take_picture(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_page_shows_how_the_run_went_and_with_what(tmp_path):
    html = render(write_run(tmp_path / "mine", settings=choose(warmup=0.25)))
    for words in (
        "<h1>Fills 36.4 % of the blanks right after 40,000 tokens</h1>",
        '<p class="name-of-page">mine</p>',
        "BERT pre-trained from random weights (tiny): 40 of 40 steps, 40,000 tokens, ",
        "It is finished. Latest on held-out data: loss 5.100, masked accuracy 36.4 %,",
        "Masked words, accuracy",
        "minutes of training",
        "Learning rate",
        "Gradient norm before clipping",
        "<td>speed, tokens per second, without padding</td>",
        '<td class="number">2,020 (2,005–2,036)</td>',
        "<tr><td>warmup</td><td>0.25</td><td>0.1</td></tr>",
        "<tr><td>torch</td><td>2.13.0</td></tr>",
        "<tr><td>hidden_size</td><td>128</td></tr>",
        "bertkit pretrain --help",
    ):
        assert words in html, words
    assert "<tr><td>batch_size</td><td>16</td><td>" not in html  # the default of this model
    assert "id2label" not in html


@pytest.mark.parametrize(
    "settings",
    [
        PretrainSettings(model="secret/mine").model_dump(mode="json"),
    ],
    ids=["pretrain"],
)
def test_the_folders_of_the_model_it_began_with_are_told_nowhere(tmp_path, settings):
    run = write_run(tmp_path / "mine", settings=settings)
    other = write_run(tmp_path / "other", settings={**settings, "seed": 9})
    html = render(run)
    assert "mine" in html
    assert "secret" not in html
    for name in ("size", "model"):
        assert html.count(f"<td>{name}</td>") <= 1  # among all settings, and not as differing
    compared = render(run, other)
    assert "<td>seed</td>" in compared
    assert "secret" not in compared


def test_runs_that_began_with_different_runs_are_told_apart(tmp_path):
    runs = [
        write_run(tmp_path / name, settings=choose(size=None, model=f"secret/{name}/run"))
        for name in ("a", "b")
    ]
    assert "<tr><td>model</td><td>a/run</td><td>b/run</td></tr>" in render(*runs)


def test_models_of_one_name_are_numbered_where_their_folders_differ(tmp_path):
    runs = [
        write_run(tmp_path / name, settings=choose(size=None, model=f"{folder}/base"))
        for name, folder in (("a", "one"), ("b", "two"), ("c", "one"))
    ]
    cells = "<td>base (1)</td><td>base (2)</td><td>base (1)</td>"
    assert f"<tr><td>model</td>{cells}</tr>" in render(*runs)


@pytest.mark.parametrize("objective", ["electra", ["bert"], None])
def test_a_run_that_learns_what_is_not_known_is_refused(tmp_path, objective):
    run = write_run(tmp_path / "run", settings=choose() | {"objective": objective})
    with pytest.raises(InputError, match=r"with the objective .*, and this one knows bert, mlm, c"):
        render(run)
    with pytest.raises(InputError, match="with the objective"):
        render(run, run)


def test_hostile_names_stay_text(tmp_path):
    record = {
        "settings": choose() | {HOSTILE: HOSTILE},
        "versions": {"torch": HOSTILE},
        "model": {HOSTILE: HOSTILE},
    }
    rows = [eval_row(0), {"event": HOSTILE, "step": 1, "loss": HOSTILE}]
    html = render(write_run(tmp_path / "<img src=x onerror=alert(2)>\x1b[2J", rows, **record))
    assert "<img" not in html
    assert html.count("&lt;/script&gt;&lt;img src=x") >= 7
    assert "\x1b" not in html


def test_an_interrupted_run_is_shown_up_to_its_last_whole_row_and_not_touched(tmp_path):
    run = write_run(tmp_path / "run", [eval_row(0), *map(train_row, range(1, 13))])
    with (run / LOG_FILE).open("a") as log:
        log.write('{"event": "train", "step": 13, "loss": 7.')
    before = take_picture(tmp_path)
    folder = run.stat().st_mtime_ns
    html = render(run)
    assert "12 of 40 steps" in html
    assert "It isn’t finished" in html
    assert "repeat the command that started it" in html
    (tmp_path / "page.html").unlink()
    assert take_picture(tmp_path) == before
    assert run.stat().st_mtime_ns == folder  # not even a lock came and went


def test_a_run_that_grew_after_it_was_finished_is_not_finished(tmp_path):
    assert "It isn’t finished" in render(write_run(tmp_path / "run", num_steps=NUM_STEPS + 1))


def test_spikes_and_skipped_steps_are_listed(tmp_path):
    spike = {"event": "spike", "step": 7, "loss": 11.5, "expected": 8.25, "examples": "0/1/2"}
    skipped = [{"event": "not-finite", "step": step, "examples": "0/3/4"} for step in range(8, 38)]
    run = write_run(tmp_path / "run", [train_row(7), spike, *skipped])
    html = render(run)
    row = "<td>7</td><td>loss far above recent losses</td><td>11.500</td><td>8.250</td>"
    assert f"{row}<td>0/1/2</td>" in html
    assert "1 × loss far above recent losses" in html
    assert "30 × loss or gradient not finite: step skipped" in html
    assert html.count("<td>loss or gradient not finite") == 19
    assert "37 of 40 steps" in html


def test_a_fine_tuned_model_is_shown_by_epochs_with_its_worth(tmp_path):
    html = render(write_finetuned(tmp_path / "mood"))
    for words in (
        "<h1>90.0 % right (85.0–95.0 %; chance 50.0 %) on 640 held-out rows</h1>",
        '<p class="name-of-page">mood</p>',
        "MiniLM, fine-tuned for the task classify: 40 of 40 steps",
        "every prediction is &#39;good&#39;",
        "90.0 % (85.0–95.0 %)",
        "over epoch. training: from 8.9 at 0.05 to 5.2 at 2",
        "broken rows, left out",
        "<td>bad</td>",
        "<tr><td>epochs</td><td>2.0</td><td>none</td></tr>",
        f"bertkit evaluate {tmp_path / 'mood'} TEST-FILE",
        "bertkit classify --help",
    ):
        assert words in html, words
    assert "Masked words" not in html
    assert "models/MiniLM" not in html  # where it lies is nobody else's business


def test_a_model_of_an_older_version_is_shown_by_epochs_too(tmp_path):
    output = write_finetuned(tmp_path / "mood")
    old = json.loads((output / METRICS_FILE).read_text())
    del old["steps_per_epoch"], old["sha256"]
    write_checksummed_json(output / METRICS_FILE, old)
    assert "over epoch. training: from 8.9 at 0.05 to 5.2 at 2" in render(output)


def test_a_fine_tuning_that_is_still_going_is_shown_by_steps(tmp_path):
    html = render(write_finetuned(tmp_path / "mood", is_finished=False) / "run")
    assert '<p class="name-of-page">mood/run</p>' in html
    assert "held-out over step. held out: from 50.0 % at 0 to 70.0 % at 20" in html
    assert "bertkit finetune --help" in html


def test_runs_are_compared_on_common_axes(tmp_path):
    one = write_run(tmp_path / "one", settings=choose(learning_rate=1e-3, seed=1))
    other = write_run(
        tmp_path / "other",
        [eval_row(0), *map(train_row, range(1, 11))],
        settings=choose(learning_rate=2e-3, seed=1),
        versions={"torch": "2.14.0", "threads": "2", "gpu": "H"},
    )
    html = render(one, other)
    for words in (
        f"<h1>{one} ends best: masked accuracy 36.4 % ({other}: 0.0 %; one seed each)</h1>",
        '<p class="name-of-page">2 runs of bertkit pretrain</p>',
        "Loss, held out",
        "Loss, training",
        f"{one}: from 8.9 at 1 to 5.2 at 40; {other}: from 8.9 at 1 to 8.2 at 10",
        "<td>40 of 40</td>",
        "<td>10 of 40</td>",
        "<tr><td>learning_rate</td><td>0.001</td><td>0.002</td></tr>",
        "<tr><td>torch</td><td>2.13.0</td><td>2.14.0</td></tr>",
        "<tr><td>gpu</td><td>absent</td><td>H</td></tr>",
        "All runs train on the same data",
    ):
        assert words in html, words
    for words in ("<td>seed</td>", "<td>threads</td>", "<td>hidden_size</td>"):
        assert words not in html, words


def test_runs_of_several_seeds_are_compared_by_their_means(tmp_path):
    def write(name, rate, seed, accuracy):
        rows = [train_row(1), eval_row(40, mlm_accuracy=accuracy)]
        return write_run(tmp_path / name, rows, settings=choose(learning_rate=rate, seed=seed))

    ones = write("a-s1", 1e-3, 1, 0.30), write("a-s2", 1e-3, 2, 0.40), write("a-s3", 1e-3, 3, 0.35)
    others = write("b-s1", 2e-3, 1, 0.38), write("b-s2", 2e-3, 2, 0.20)  # the best single run lost
    html = render(*ones)
    spread = "mean 35.0 % (standard deviation 5.0 points; 30.0–40.0 %)"
    assert f"<h1>{ones[0]} (3 seeds): masked accuracy {spread}</h1>" in html
    html = render(*ones, *others)
    assert f"<h1>{ones[0]} (3 seeds) ends best: masked accuracy {spread} (" in html
    assert f"({others[0]} (2 seeds): mean 29.0 % (standard deviation 12.7 points;" in html
    assert "20.0–38.0 %))</h1>" in html
    assert f">{spread}</td>" in html
    html = render(*ones, write("c-s1", 3e-3, 1, 0.5))
    assert f"{tmp_path / 'c-s1'} ends best: masked accuracy 50.0 % ({ones[0]} (3" in html


def test_runs_on_different_data_are_told_to_be(tmp_path):
    runs = write_run(tmp_path / "a"), write_run(tmp_path / "b", data_fingerprint="b")
    assert "The runs train on different data" in render(*runs)


@pytest.mark.parametrize("number", [0, 7])
def test_no_run_and_more_than_can_be_told_apart_are_refused(tmp_path, number):
    with pytest.raises(SettingsError, match=f"up to 6 .*got {number}$"):
        report([tmp_path] * number)


def test_runs_of_two_kinds_are_not_compared(tmp_path):
    runs = write_run(tmp_path / "a"), write_finetuned(tmp_path / "b")
    with pytest.raises(InputError, match=r"a is of `bertkit pretrain` and .*b of .*classify`"):
        render(*runs)


def test_texts_are_for_one_pre_training_run(tmp_path):
    run, model = write_run(tmp_path / "a"), write_finetuned(tmp_path / "b")
    with pytest.raises(SettingsError, match=r"b is of `bertkit finetune classify`; leave it out"):
        render(model, text=("a [MASK]",))
    with pytest.raises(SettingsError, match="for the report of one run"):
        render(run, run, text=("a [MASK]",))
    with pytest.raises(ValueError, match="leave out examples 0"):
        ReportSettings(text=("a [MASK]",), examples=0)
    with pytest.raises(InputError, match="data is for pre-training runs"):
        render(model, data=tmp_path)


def test_the_newest_checkpoint_fills_the_texts(tmp_path):
    run = write_run(tmp_path / "run")
    save_run(run)
    write_run(run)
    html = render(run, text=(f"the [MASK] saw a [MASK] {HOSTILE}",))
    assert "Fill-mask examples" in html
    assert "The outputs are those of step-00000003." in html
    assert html.count("%, ") >= 6
    assert "<img" not in html
    with pytest.raises(InputError, match=r"text 1 has no \[MASK\]|\[MASK\]"):
        render(run, text=("the cat",))
    assert "Fill-mask examples" not in render(run)  # it knows none of the words
    assert "Fill-mask examples" not in render(run, examples=0)


def test_a_checkpoint_that_cannot_be_read_costs_the_examples_alone(tmp_path):
    run = tmp_path / "run"
    weights = save_run(run) / "model.safetensors"
    write_run(run)
    weights.write_bytes(weights.read_bytes()[:-1])
    html = render(run, text=("the [MASK]",))
    assert "There are no examples: " in html
    assert "Learning rate" in html
    weights.unlink()
    assert "There are no examples: " in render(run, text=("the [MASK]",))


def damage_record(run: Path) -> None:
    path = run / RECORD_FILE
    path.write_text(path.read_text().replace("tiny", "tine"))


def unseal_record(run: Path) -> None:
    path = run / RECORD_FILE
    content = json.loads(path.read_text())
    del content["sha256"]
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (damage_record, DamagedFileError, r"settings\.json was altered"),
        (unseal_record, DamagedFileError, "written by an older bertkit"),
        (lambda run: write_log(run, []), InputError, "has no row yet"),
        (lambda run: (run / LOG_FILE).unlink(), InputError, "has no row yet"),
        (lambda run: (run / RECORD_FILE).unlink(), InputError, r"isn't a run.*bertkit pretrain"),
        (lambda run: write_run(run, settings={"model": ["x"]}), BertkitError, "model"),
        (
            lambda run: write_run(run, settings={"task": "t", "features": 3}),
            BertkitError,
            "features",
        ),
    ],
)
def test_what_is_no_run_or_is_not_whole_is_refused(tmp_path, spoil, error, words):
    run = write_run(tmp_path / "run")
    spoil(run)
    with pytest.raises(error, match=words):
        render(run)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("seeds", r"seed\*"), ("search", r"\*/seed\*")],  # now and earlier
)
def test_the_runs_of_several_seeds_are_to_be_named(tmp_path, name, pattern):
    seeds = write_run(tmp_path / "mood" / name)
    assert f'<p class="name-of-page">{name}</p>' in render(seeds)
    (seeds / LOG_FILE).unlink()
    for path in (seeds, seeds.parent):
        with pytest.raises(InputError, match=f"several seeds; name its runs: .*/{name}/{pattern}"):
            render(path)


def test_nothing_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(MissingFileError, match="none doesn't exist"):
        render(tmp_path / "none")


def test_a_record_of_another_version_is_shown_with_what_this_one_does_not_know(tmp_path):
    html = render(write_run(tmp_path / "run", settings=choose() | {"warp": 9}))
    assert "<tr><td>warp</td><td>9</td><td>no default</td></tr>" in html
    html = render(write_run(tmp_path / "run", settings={"task": "sing", "verses": 3}))
    assert "finetune sing" not in html
    assert "fine-tuned for the task sing" in html


def test_the_default_page_lies_in_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_finetuned(tmp_path / "mood")
    (tmp_path / "mood" / "report.html").write_text("that of the fine-tuning")
    written = report([Path("mood")]).report
    assert written == Path("mood/run/report.html")
    assert (tmp_path / "mood" / "report.html").read_text() == "that of the fine-tuning"
    write_run(tmp_path / "a")
    assert report([Path("a"), Path("a")]).report == Path("comparison.html")


def test_an_output_that_exists_is_kept(tmp_path):
    run = write_run(tmp_path / "run")
    output = report([run]).report
    output.write_text("mine")
    with pytest.raises(SettingsError, match="exists; name another file"):
        report([run])
    assert output.read_text() == "mine"
    report([run], settings=ReportSettings(overwrite=True))
    assert "/run</p>" in output.read_text()


def test_only_a_page_is_written_over(tmp_path):
    run = write_run(tmp_path / "run")
    before = take_picture(run)
    for name in (RECORD_FILE, LOG_FILE):
        with pytest.raises(SettingsError, match=r"must end in \.html"):
            report([run], run / name, ReportSettings(overwrite=True))
    (tmp_path / "x.html").mkdir()
    with pytest.raises(SettingsError, match="is a folder"):
        report([run], tmp_path / "x.html", ReportSettings(overwrite=True))
    assert take_picture(run) == before


def test_programs_get_the_run_in_numbers(tmp_path):
    run = write_run(tmp_path / "run", [eval_row(0), *map(train_row, range(1, 5))])
    [facts] = report([run]).runs
    assert summarize_run(facts) == {
        "run": str(run),
        "kind": "pretrain",
        "step": 4,
        "num_steps": 40,
        "is_finished": False,
        "tokens": 4000.0,
        "elapsed_seconds": 2.0,
        "tokens_per_second": 2002.5,
        "held_out": {"loss": 9.1, "mlm_accuracy": 0.0, "nsp_accuracy": 0.6},
        "incidents": {},
    }
    json.dumps(summarize_run(facts), allow_nan=False)


def test_a_run_of_another_kind_of_model_is_refused(tmp_path):
    path = write_run(tmp_path / "run", [train_row(1)], model={"model_type": "skip-thought"})
    with pytest.raises(InputError, match="a model of the type 'skip-thought'; reports are of runs"):
        render(path)
