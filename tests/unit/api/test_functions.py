"""The functions of `import bertkit`: rows in, models and results out, and nothing lost."""

import inspect
import os
import signal
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
from tests.closeness import close
from tests.unit.inference.small_task import save_classifier, save_tagger
from tests.wings import needs

import bertkit
from bertkit.base.errors import (
    BertkitError,
    InputError,
    MissingFileError,
    SettingsError,
    StoppedError,
)
from bertkit.cli.app import PACKAGES, build_app
from bertkit.cli.main import main
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.pretrain.settings import PretrainSettings

ROWS = [("the cat saw", "x"), ("a dog saw", "y")] * 12
FUNCTIONS = [name for name in bertkit.__all__ if inspect.isfunction(getattr(bertkit, name))]
BRIEF = {"epochs": 2, "batch_size": 4, "max_length": 12, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def classifier(model, tmp_path_factory):
    output = tmp_path_factory.mktemp("classifier") / "out"
    return bertkit.finetune("classify", model=model, train=ROWS, output=output, **BRIEF)


def test_a_command_that_is_no_function_says_what_to_write_instead():
    """Each command is a function or says so; other names are unknown."""
    for name in build_app():
        known = name.replace("-", "_")
        if name.startswith("-") or name in PACKAGES:
            continue
        if known not in bertkit.__all__:
            with pytest.raises(AttributeError, match=f"has no attribute '{known}'; use "):
                getattr(bertkit, known)
    with pytest.raises(AttributeError, match=r"'tag'; use bertkit.predict\(model, rows\)"):
        _ = bertkit.tag
    with pytest.raises(AttributeError, match=r"no attribute 'brew_coffee'$"):
        _ = bertkit.brew_coffee


def test_signatures_have_the_settings_with_their_defaults():
    shown = inspect.signature(bertkit.finetune).parameters
    for name, info in FineTuneSettings.model_fields.items():
        assert shown[name].default == info.default
    assert shown["multi_label"].default is False
    assert shown["seeds"].default == 1
    assert list(inspect.signature(bertkit.pretrain).parameters)[:2] == ["data", "output"]
    assert set(PretrainSettings.model_fields) <= set(inspect.signature(bertkit.pretrain).parameters)


def test_finetune_returns_the_model_with_its_metrics(classifier):
    assert type(classifier) is bertkit.Classifier
    assert 0 <= classifier.metrics["accuracy"] <= 1
    assert classifier("the cat").label in {"x", "y"}
    html = classifier._repr_html_()
    assert "Classifier: x, y" in html
    assert "<td>accuracy</td>" in html


def test_a_loaded_model_has_its_metrics(model, tmp_path, capsys):
    folder = tmp_path / "m"
    made = bertkit.finetune("classify", model=model, train=ROWS, output=folder, **BRIEF)
    loaded = bertkit.Classifier.load(folder)
    assert loaded.metrics == made.metrics
    assert "accuracy" in loaded.metrics
    text = (folder / "metrics.json").read_text()
    capsys.readouterr()
    (folder / "metrics.json").write_text(text.replace('"accuracy"', '"luck"'))
    assert bertkit.Classifier.load(folder).metrics == {}
    assert "metrics are left out" in capsys.readouterr().err
    (folder / "metrics.json").unlink()
    assert bertkit.Classifier.load(folder).metrics == {}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [list, pd.DataFrame])
def test_predict_and_evaluate_take_rows(classifier, kind):
    rows = kind([{"text": "the cat", "label": "x"}, {"text": "a dog", "label": "y"}])
    predicted = bertkit.predict(classifier, rows)
    assert "<th>probability</th>" in predicted._repr_html_()
    labels = [each.label for each in predicted]
    assert labels == [classifier("the cat").label, classifier("a dog").label]
    result = bertkit.evaluate(classifier, rows)
    right = [label == wanted for label, wanted in zip(labels, "xy", strict=True)]
    assert result.metrics["accuracy"] == np.mean(right)
    assert "<td>accuracy</td>" in result._repr_html_()
    renamed = rows.rename(columns={"text": "body"}) if kind is pd.DataFrame else None
    if renamed is not None:
        assert len(bertkit.predict(classifier, renamed, text_column="body")) == 2
    (first, _) = bertkit.predict(classifier, rows, top_k=1)
    assert list(first.probabilities) == labels[:1]


@pytest.mark.parametrize("answer", [bertkit.predict, bertkit.evaluate])
def test_rows_that_are_missing_are_an_error_before_a_model_is_loaded(tmp_path, answer):
    folder = tmp_path / "damaged"
    folder.mkdir()
    with pytest.raises(MissingFileError, match="there is no file"):
        answer(folder, tmp_path / "rows.csv")


def test_a_tuple_is_an_input_as_the_model_reads_it(classifier, tmp_path):
    with pytest.raises(InputError, match="a pair of texts, and the model reads single texts;"):
        bertkit.predict(classifier, ROWS[:2])
    folder = tmp_path / "foreign"
    save_classifier(folder)
    (folder / "task.json").unlink()  # another tool's model doesn't say what it reads
    other = bertkit.Classifier.load(folder)
    pairs = [("the cat", "a dog saw"), ("a hat", "lost")]
    expected = [one.probabilities for one in other(pairs)]
    assert expected[0] != close(other("the cat").probabilities, "float32")
    for rows in (
        pairs,
        iter(pairs),
        [{"text": first, "text_pair": second} for first, second in pairs],
        pd.DataFrame(pairs, columns=["query", "passage"]),
    ):
        found = [one.probabilities for one in bertkit.predict(other, rows)]
        assert found == close(expected, "float32")
    named = namedtuple("Row", ["label", "text"])
    (found,) = bertkit.predict(other, [named("x", "the cat")])
    assert found.probabilities == close(other("the cat").probabilities, "float32")


@pytest.mark.parametrize(
    ("name", "value"), [("text_column", "a"), ("id_column", "b"), ("keep_columns", ("c",))]
)
def test_tuples_have_no_columns(classifier, name, value):
    with pytest.raises(SettingsError, match=f"{name} is for rows with columns"):
        bertkit.predict(classifier, [("the cat", "good")], **{name: value})


def test_a_tuple_of_words_is_a_sentence_for_a_tagger(tmp_path):
    tag = bertkit.Tagger.load(save_tagger(tmp_path / "tagger"))
    (found,) = bertkit.predict(tag, [("cat", "saw", "hat")])
    assert [word.text for word in found.words] == ["cat", "saw", "hat"]


def test_the_same_call_returns_what_is_finished(model, tmp_path):
    first = bertkit.finetune("classify", model=model, train=ROWS, output=tmp_path / "m", **BRIEF)
    steps: list[int] = []
    again = bertkit.finetune(
        "classify",
        model=model,
        train=iter(ROWS),
        output=tmp_path / "m",
        on_step=lambda step, _: steps.append(step),
        **BRIEF,
    )
    assert (again.metrics, steps) == (first.metrics, [])


def test_control_c_keeps_the_work(model, tmp_path, classifier):
    steps: list[int] = []

    def interrupt(step, values):
        assert values["loss"] > 0
        steps.append(step)
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    call = {"model": model, "train": ROWS, "output": tmp_path / "m", **BRIEF}
    with pytest.raises(StoppedError, match="stopped after step 3") as raised:
        bertkit.finetune("classify", on_step=interrupt, **call)
    assert len(raised.traceback) == 2
    evaluated: list[int] = []
    found = bertkit.finetune(
        "classify",
        on_step=interrupt,
        on_evaluation=lambda step, metrics: evaluated.append(step),
        **call,
    )
    assert steps == list(range(1, 13))
    assert evaluated == [6, 12]
    assert found.metrics == classifier.metrics


def test_texts_become_an_encoder(tmp_path):
    texts = [f"The cat number {n} sat on the mat.\nIt saw a dog." for n in range(40)]
    evaluations: list[int] = []
    result = bertkit.pretrain(
        texts,
        output=tmp_path / "work",
        size="tiny",
        steps=2,
        batch_size=4,
        max_length=16,
        eval_examples=8,
        on_evaluation=lambda step, _: evaluations.append(step),
    )
    assert result.num_steps == 2
    assert evaluations == [0, 1, 2]
    assert "loss" in result.metrics
    whole = bertkit.fill_mask("The [MASK].", model=tmp_path / "work")
    assert whole == bertkit.FillMask.load(tmp_path / "work" / "run")("The [MASK].")
    assert main(["fill-mask", "--model", str(tmp_path / "work"), "The [MASK]."]) == 0
    shards = bertkit.prepare(texts, tmp_path / "work", output=tmp_path / "again")
    assert shards.load_tokenizer().fingerprint == (
        bertkit.Tokenizer.load(tmp_path / "work" / "tokenizer").fingerprint
    )
    assert bertkit.pretrain(
        texts, output=tmp_path / "work", size="tiny", steps=2, batch_size=4, max_length=16,
        eval_examples=8,
    ).num_steps == 2  # fmt: skip
    again = bertkit.pretrain(
        tmp_path / "work" / "shards", output=tmp_path / "other", size="tiny", steps=1,
        batch_size=4, max_length=16, eval_examples=8,
    )  # fmt: skip
    assert again.num_steps == 1


def test_a_tokenizer_and_shards_of_a_data_frame(tmp_path):
    frame = pd.DataFrame({"body": [f"The cat {n} sat. It ran." for n in range(30)]})
    tokenizer = bertkit.train_tokenizer(
        frame, text_column="body", vocab_size=70, output=tmp_path / "tokenizer"
    )
    shards = bertkit.prepare(
        frame, tokenizer, text_column="body", held_out=0.1, output=tmp_path / "shards"
    )
    counts = shards.manifest.train + shards.manifest.held_out
    assert (counts.documents, counts.sentences) == (30, 60)
    with pytest.raises(bertkit.BertkitError, match="texts has changed"):
        bertkit.prepare(
            [*frame["body"][:-1], "The cat 30 sat. It ran."],
            tokenizer,
            held_out=0.1,
            output=tmp_path / "shards",
        )


def test_vectors_and_hits_of_texts_and_files_agree(model, tmp_path):
    texts = ["the cat saw", "a dog saw the cat", "the dog"]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    vectors = bertkit.embed(texts, model=model)
    np.testing.assert_array_equal(bertkit.embed(tmp_path / "texts.txt", model=model), vectors)
    embedder = bertkit.Embedder.load(model)
    np.testing.assert_array_equal(
        bertkit.embed(pd.DataFrame({"t": texts}), model=embedder, text_column="t"), vectors
    )
    hits = bertkit.search("the cat", texts, model=model, top_k=2)
    of_file = bertkit.search(["the cat"], tmp_path / "texts.txt", model=model, top_k=2)
    assert [hit.text for hit in hits] == [hit.text for hit in of_file[0]]


def test_the_encoding_of_files_can_be_named(model, tmp_path):
    (tmp_path / "a.txt").write_bytes("the schöner cat\n".encode("latin-1") * 5)
    (tmp_path / "b.txt").write_text("the schöner cat\n" * 5)
    right = bertkit.embed(tmp_path / "b.txt", model=model)
    for call in (
        lambda **reading: bertkit.embed(tmp_path / "a.txt", model=model, **reading),
        lambda **reading: bertkit.search("cat", tmp_path / "a.txt", model=model, **reading),
        lambda **reading: bertkit.train_tokenizer(tmp_path / "a.txt", vocab_size=99, **reading),
        lambda **reading: bertkit.pretrain(tmp_path / "a.txt", steps=1, **reading),
    ):
        with pytest.raises(InputError, match=r"lose characters.* --encoding latin-1"):
            call()
        with pytest.raises(SettingsError, match="unknown encoding"):
            call(encoding="klingon")
    found = bertkit.embed(tmp_path / "a.txt", model=model, encoding="latin-1")
    np.testing.assert_array_equal(found, right)
    hits = bertkit.search("cat", tmp_path / "a.txt", model=model, encoding="latin-1")
    assert hits[0].text == "the schöner cat"


def test_folders_and_lists_of_files_are_corpora(model, tmp_path):
    (tmp_path / "a.txt").write_text("the cat saw\n\n")
    (tmp_path / "b.txt").write_text("the dog\n")
    names = [tmp_path / "a.txt", str(tmp_path / "b.txt")]
    expected = bertkit.embed(["the cat saw", "", "the dog"], model=model)
    for corpus in (tmp_path, str(tmp_path), names, f"{tmp_path}/*.txt"):
        np.testing.assert_array_equal(bertkit.embed(corpus, model=model), expected)
        hits = bertkit.search("the dog", corpus, model=model)
        assert hits[0].name.endswith("b.txt:1")
        assert len(hits) == 2


def test_rows_without_text_are_never_found(model, capsys):
    rows = [{"n": 5, "text": " "}, {"n": 6, "text": "the cat"}, {"n": 7, "text": ""}]
    hits = bertkit.search("the dog", rows, model=model, id_column="n")
    assert [(hit.id, hit.text) for hit in hits] == [("6", "the cat")]
    assert "2 empty texts left out" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"has no column m; .* one of n, text"):
        bertkit.search("the dog", rows, model=model, id_column="m")


@needs("interpret")
def test_a_view_is_short_in_a_terminal(model):
    view = bertkit.view("the cat saw a dog", model=model, views="heads")
    assert repr(view) == "AttentionView('small', '[CLS] the cat saw a dog [SEP]')"
    assert "<iframe" in view._repr_html_()


def test_a_model_that_tells_nothing_apart_is_told(model, capsys):
    rows = [("the cat", "x"), ("the cat", "y")] * 8  # nothing to learn
    bertkit.finetune("classify", model=model, train=rows, dev=rows[:2], **{**BRIEF, "epochs": 1})
    assert "WARNING: every prediction is" in capsys.readouterr().err


def test_without_an_output_the_folder_is_told(model, capsys):
    found = bertkit.finetune("classify", model=model, train=ROWS, **BRIEF)
    line = capsys.readouterr().err.splitlines()[0]
    assert line.startswith("writing into ")
    assert "output= names a folder to keep" in line
    assert found.metrics


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bertkit.finetune("sort", train=ROWS), "no task 'sort'; choose one of classify"),
        (
            lambda: bertkit.finetune("classify", train=ROWS, epoch=2),
            r"^finetune has no setting epoch; did you mean epochs\?$",
        ),
        (
            lambda: bertkit.finetune("classify", train=ROWS, epochs="many"),
            "^epochs must be a number, got 'many'",
        ),
        (bertkit.score, "give one of: texts, minimal_pairs, data"),
        (
            lambda: bertkit.score(model="m", data="s", text_column="y", engine="openvino"),
            "as in training: no engine, text_column",
        ),
        (
            lambda: bertkit.score(minimal_pairs="f", text_column="y"),
            "minimal pairs are in sentence_good and sentence_bad; leave out text_column",
        ),
        (
            lambda: bertkit.embed(["a"], pool="cls"),
            r"^embed has no setting pool; did you mean pooling\?$",
        ),
        (lambda: bertkit.report("r", foo=1), r"report has no setting foo; help\(bertkit.report\)"),
    ],
)
def test_a_wrong_call_is_told(call, message):
    with pytest.raises((SettingsError, InputError), match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            lambda: bertkit.generate("a"),
            "generate: missing a required.* argument: 'model'",
            marks=needs("decoders"),
        ),
        (lambda: bertkit.finetune("classify"), "finetune: missing a required.* argument: 'train'"),
        (lambda: bertkit.next_sentence("a"), "next_sentence: missing a required.* 'second'"),
        (lambda: bertkit.fill_mask("a", "b"), "fill_mask: too many positional arguments"),
        (lambda: bertkit.fill_mask("a", texts="b"), "fill_mask: multiple values.* 'texts'"),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_a_type_error(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def interrupted_texts(cause: type[BaseException]):
    """A text, and Ctrl-C before the next one, which a library may turn into an error."""
    yield "the cat"
    try:
        os.kill(os.getpid(), signal.SIGINT)
        yield "a dog"
    except KeyboardInterrupt:
        raise cause from None


@pytest.mark.parametrize("cause", [KeyboardInterrupt, ImportError])
@pytest.mark.parametrize("name", ["embed", "train_tokenizer", "score"])
def test_control_c_ends_a_function_with_one_short_exception(name, cause):
    with pytest.raises(KeyboardInterrupt, match=f"^bertkit.{name} was interrupted$") as raised:
        getattr(bertkit, name)(interrupted_texts(cause))
    assert len(raised.traceback) == 2
    assert raised.value.__suppress_context__
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


SCALAR = np.array("a text")
FRAME = pd.DataFrame({"text": ["the cat"]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: bertkit.search(7, ["the cat"], model=model), "list of texts, got int"),
        (lambda model: bertkit.search(SCALAR, ["a"], model=model), "list of texts, got ndarray"),
        (lambda model: bertkit.similarity("a", SCALAR), "list of rows, got ndarray without"),
        (lambda model: bertkit.search(FRAME, ["cat"], model=model), "of texts, got DataFrame"),
        (lambda model: bertkit.embed(["a"], model=[model]), "the id of a model.* not list"),
        (lambda model: bertkit.inspect(None), "the id of a model.* not NoneType"),
        (lambda model: bertkit.report(b"run/"), "^run is the name .* not bytes$"),
        (lambda model: bertkit.export(model, output=1.5), "^output is the name .* not float$"),
        (lambda model: bertkit.train_tokenizer(["a"], output=3), "^output is the name .* not int$"),
        (lambda model: bertkit.finetune([FRAME], train=ROWS), r"^there is no task \[ text 0 the"),
        (lambda model: bertkit.finetune("classify", train=None), "a list of rows, got None$"),
        (lambda model: bertkit.embed({"text": ["a"]}, model=model), "list of rows, got dict$"),
        pytest.param(
            lambda model: bertkit.view(FRAME, model=model),
            "^expected a text, got text 0 the cat",
            marks=needs("interpret"),
        ),
    ],
)
def test_a_value_of_a_wrong_type_is_told_in_one_line(call, message, model, tmp_path):
    with pytest.raises(BertkitError, match=message) as raised:
        call(model)
    assert "\n" not in str(raised.value)


def test_a_predictor_refuses_a_data_frame_and_names_what_reads_it(classifier):
    with pytest.raises(InputError, match=r"got DataFrame; the functions of bertkit read data"):
        classifier(FRAME)
    assert [one.label for one in bertkit.predict(classifier, FRAME)] == [
        classifier("the cat").label
    ]
