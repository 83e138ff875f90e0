"""The report of a run that trains a model that writes."""

from tests.unit.recipes.report.small import NUM_STEPS, eval_row, train_row, write_run
from tests.unit.recipes.report.test_report import render

from bertkit.checkpoints.run_folder import METRICS_FILE
from bertkit.decoders.seq2seq.settings import TranslateSettings


def test_a_translator_is_told_as_one(tmp_path):
    rows = [{**eval_row(step), "bleu": step / 2} for step in (0, NUM_STEPS)]
    rows.insert(1, train_row(NUM_STEPS))
    settings = {"kind": "translate", **TranslateSettings(dropout=0.3).model_dump(mode="json")}
    output = tmp_path / "de-en"
    write_run(output / "run", rows, settings=settings)
    (output / METRICS_FILE).write_text("that of another kind")
    html = render(output)
    for words in (
        "An encoder-decoder trained to translate, from random weights: 40 of 40 steps",
        "bleu 20.",
        "<tr><td>dropout</td><td>0.3</td><td>0.2</td></tr>",
        f"bertkit translate {output} --help",
    ):
        assert words in html, words
    for words in ("A BERT", "Masked words", "bertkit pretrain"):
        assert words not in html, words


def test_the_folder_of_the_model_it_began_with_is_told_nowhere(tmp_path):
    chosen = TranslateSettings(model="secret/mine").model_dump(mode="json")
    html = render(write_run(tmp_path / "mine", settings={"kind": "translate", **chosen}))
    assert "mine" in html
    assert "secret" not in html
