"""Pairs of texts from Python train a translator or a summarizer, as files of them do."""

import pandas as pd
import pytest

import bertkit
from bertkit.base.errors import InputError, SettingsError
from bertkit.cli.main import main
from bertkit.decoders.generation.abstractive import AbstractiveSummarizer

PAIRS = [(f"der Hund {n} sah es", f"the dog {n} saw it") for n in range(12)]
TINY = {
    "size": "1x16",
    "vocab_size": 80,
    "steps": 2,
    "eval_examples": 2,
    "average": 1,
    "max_length": 16,
    "max_tokens": 8,
}


def test_tuples_train_a_translator_with_its_metrics(tmp_path):
    pytest.importorskip("sacrebleu")
    steps: list[int] = []
    made = bertkit.finetune(
        "translate",
        train=PAIRS,
        output=tmp_path / "m",
        on_step=lambda step, _: steps.append(step),
        **TINY,
    )
    assert type(made) is bertkit.Translator
    assert "bleu" in made.metrics
    assert steps == [1, 2]
    assert bertkit.Translator.load(tmp_path / "m").metrics == made.metrics
    assert bertkit.translate("der Hund", model=made).text == made("der Hund").text
    again = bertkit.finetune("translate", train=iter(PAIRS), output=tmp_path / "m", **TINY)
    assert again.metrics == made.metrics
    assert "<td>bleu</td>" in made._repr_html_()


def test_two_files_are_the_flags_of_the_command(tmp_path):
    pytest.importorskip("sacrebleu")
    names = [tmp_path / "a.de", tmp_path / "a.en"]
    for name, lines in zip(names, zip(*PAIRS, strict=True), strict=True):
        name.write_text("".join(f"{line}\n" for line in lines))
    made = bertkit.finetune("translate", train=names, output=tmp_path / "m", **TINY)
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in TINY.items()]
    output = str(tmp_path / "other")
    files = ["--train", *map(str, names)]
    assert main(["finetune", "translate", *files, "--output", output, *flags]) == 0
    assert bertkit.Translator.load(output).metrics == made.metrics


def test_a_data_frame_trains_a_summarizer(tmp_path):
    pytest.importorskip("rouge_score")
    frame = pd.DataFrame(PAIRS, columns=["text", "summary"])
    made = bertkit.finetune(
        "summarize", train=frame[:9], dev=frame[9:], output=tmp_path / "m", **TINY
    )
    assert type(made) is AbstractiveSummarizer
    assert made.metrics


def test_what_does_not_fit_is_named(tmp_path):
    with pytest.raises(SettingsError, match="finetune has no setting max_source"):
        bertkit.finetune("translate", train=PAIRS, output=tmp_path / "m", max_source=3)
    with pytest.raises(SettingsError, match=r"no task 'translation'; .*translate, summarize"):
        bertkit.finetune("translation", train=PAIRS, output=tmp_path / "m")
    with pytest.raises(InputError, match="no column source"):
        bertkit.finetune("translate", train=[{"de": "a", "en": "b"}], output=tmp_path / "m")
