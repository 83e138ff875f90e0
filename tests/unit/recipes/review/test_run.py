"""The review of rows: what it says of labels, and of files in which they can't be checked."""

import json

import pytest
from tests.unit.recipes.finetune.small import make_rows, save_model, write_rows

import bertkit
from bertkit.base.errors import SettingsError
from bertkit.data.tables.records import open_records
from bertkit.recipes.review.rows import read_rows
from bertkit.recipes.review.run import review
from bertkit.recipes.review.settings import ReviewSettings, choose_settings, choose_task
from bertkit.recipes.review.table import Places, build_page

SETTINGS = ReviewSettings()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review") / "model"
    save_model(folder)
    return folder


def look_at(model, *paths, settings=SETTINGS):
    tables = [open_records(path, settings) for path in paths]
    return review(tables, choose_settings(tables[0], settings, {}), model, Places())


def exchange(row: str) -> str:
    text, _, label = row.rpartition(",")
    return f"{text},{'bad' if label == 'good' else 'good'}"


def test_exchanged_labels_come_first(tmp_path, model):
    rows = make_rows(80, seed=1)
    rows[10:13] = map(exchange, rows[10:13])
    result = look_at(model, write_rows(tmp_path / "rows.csv", rows))
    ranked = result.judgment.errors.ranking[:3]
    assert sorted(ranked.tolist()) == [10, 11, 12]
    assert result.planted.number == 8 * 4
    assert result.planted.num_found >= 16
    assert result.quality.evaluation.metrics["macro_f1"] > 0.9
    assert "80 labels look wrong (of errors planted for a check " in result.describe()
    row = result.describe_row(10)
    assert (row.likely, row.label, row.looks_wrong) == ("good", "bad", True)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([f"text {number},same" for number in range(20)], "all rows have the label same"),
        (["a,good", "b,bad"], "2 rows are too few"),
        ([f"text,{number:03}x" for number in range(20)], "every row has a label of its own"),
        ([f"text,x{number}" for number in range(1100)] * 2, "1,100 different labels in 2,200 rows"),
    ],
    ids=["one class", "few rows", "no class twice", "many classes"],
)
def test_labels_that_cannot_be_checked_are_named(tmp_path, model, rows, reason):
    result = look_at(model, write_rows(tmp_path / "rows.csv", rows))
    assert result.judgment is None
    assert reason in result.describe()


def test_measurements_are_numbers_to_predict(tmp_path):
    rows = [
        f"{row.rpartition(',')[0]},{number % 7}.5" for number, row in enumerate(make_rows(30, 1))
    ]
    table = open_records(write_rows(tmp_path / "rows.csv", [*rows, "the cat,3"]))
    found = read_rows(table, choose_settings(table, SETTINGS, {}))
    assert (found.kind.name, found.examples[-1].number) == ("regress", 3.0)


def test_scores_of_pairs_are_numbers_to_predict_unless_a_label_is_there(tmp_path):
    def find_task(header, **columns):
        path = tmp_path / "rows.csv"
        path.write_text(f"{header}\n" + "a,b,1\n" * 3, encoding="utf-8")
        return choose_task(open_records(path), columns)

    assert find_task("sentence1,sentence2,score") == "regress"
    assert find_task("text,label,score") == "classify"
    assert find_task("a,b,score", label_column="b") == "classify"


def test_a_typing_error_of_a_label_is_a_row_to_go_through_and_no_class_to_measure(tmp_path, model):
    rows = [row.replace("good", "positive") for row in make_rows(40, seed=1)]
    found = look_at(model, write_rows(tmp_path / "rows.csv", [*rows, "the cat,positve", ",bad"]))
    assert found.describe_row(40).notes[0] == "positve may be a typing error of positive"
    assert 40 in found.ranking[: found.judgment.errors.num_errors + 1]
    assert not found.describe_row(41).looks_wrong
    assert found.quality.evaluation.metrics["macro_f1"] > 0.9
    assert "rarest label: positve, 1 row, left out" in found.describe()


def test_findings_stand_beside_the_rows_of_the_file(tmp_path, model):
    rows = [f"{row},{number}" for number, row in enumerate(make_rows(30, seed=1))]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["text,label,notes", *rows]) + "\n", encoding="utf-8")
    output, report = tmp_path / "reviewed.csv", tmp_path / "review.html"
    found = bertkit.review(path, model=model, output=output, report=report)
    lines = output.read_text(encoding="utf-8").splitlines()
    names = ["looks_wrong", "likely", "probability", "suspicion", "notes"]
    assert lines[0].split(",") == ["text", "label", "notes", *(f"review_{name}" for name in names)]
    assert len(lines) == 31
    assert [row["notes"] for row in found.to_rows()] == [str(number) for number in range(30)]
    assert "Review of" in report.read_text(encoding="utf-8")
    assert "label" in found._repr_html_()


def test_the_page_of_sentences_has_their_words_and_offers_no_tag_for_a_whole_one(tmp_path, model):
    verbs = ("saw", "met", "has", "had", "is", "was") * 4
    sentences = [f"the\tO\ncat\tB-ANIMAL\n{verb}\tO\n\n" for verb in verbs]
    wrong = "a\tB-ANIMAL\ncat\tO\nsaw\tO\n\n"
    path = tmp_path / "sentences.conll"
    path.write_text("".join([*sentences[:12], wrong, *sentences[12:]]), encoding="utf-8")
    page = build_page(look_at(model, path))
    row = next(row for row in page.rows if row.number == 13)
    assert (row.text, row.given, row.likely) == ("a cat saw", "B-ANIMAL, O, O", "")
    assert any(reason.startswith("likely ") for reason in row.reasons)
    assert page.labels == ()


def test_answers_and_choices_are_labels_as_text(tmp_path):
    def show_labels(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        table = open_records(path, SETTINGS)
        found = read_rows(table, choose_settings(table, SETTINGS, {}))
        return [found.show_label(number) for number in range(len(rows))]

    question = {"question": "who saw ?", "context": "the cat saw"}
    answers = {"text": ["cat", "the cat", "cat"], "answer_start": [4, 0, 4]}
    none = {"text": [], "answer_start": []}
    found = show_labels(question | {"answers": answers}, question | {"answers": none})
    assert found == ["cat | the cat", "(no answer)"]
    choice = {"context": "the cat", "choices": ["saw", "sat"], "label": 1}
    assert show_labels(choice) == ["sat"]


def test_a_list_of_pairs_is_reviewed_as_a_file_is(model):
    pairs = [tuple(row.rsplit(",", 1)) for row in make_rows(30, seed=1)]
    found = bertkit.review(pairs, model=model)
    assert found.to_rows()[0].keys() >= {"text", "label", "looks_wrong"}


def test_rows_to_label_next_are_those_of_the_pool(tmp_path, model, capsys):
    train = write_rows(tmp_path / "train.csv", make_rows(40, seed=1))
    trained = tmp_path / "trained"
    bertkit.finetune(
        "classify", train=train, model=model, output=trained, features="last", max_length=12
    )
    texts = [{"text": row.rpartition(",")[0], "id": n} for n, row in enumerate(make_rows(20, 2))]
    found = bertkit.review(texts, model=trained, next=3, output=tmp_path / "next.csv")
    assert [row.keys() for row in found.to_rows()] == [{"text", "id", "why"}] * 3
    assert len({row["id"] for row in found.to_rows()}) == 3
    assert repr(found).startswith("rows: 20 rows; to label next:")
    first = found.to_rows()[0]
    labeled = [(first["text"], "good")]
    assert bertkit.review(texts, labeled, model=trained, next=1).to_rows()[0]["id"] != first["id"]
    with pytest.raises(SettingsError, match="--next needs a fine-tuned model"):
        bertkit.review(texts, next=3)


def test_rows_that_stand_twice_are_named_with_their_labels(tmp_path, model):
    train = write_rows(tmp_path / "a.csv", ["so good,good", "a film,bad", "So good!,bad"])
    test = write_rows(tmp_path / "b.csv", ["SO GOOD,good", "other words,bad"])
    result = look_at(model, train, test)
    places = [f"{train}, line {number}" for number in (2, 4)]
    assert f"  {places[0]}: 'so good' is good, and bad at line 4" in result.lines
    assert "earlier text with a different label" not in result.describe()
    row = result.describe_row(2)
    assert row.twins == [1]
    assert row.notes == [f"repeats {places[0]}", "with another label", f"stands in {test} too"]


def test_a_text_of_all_rows_is_named_once(tmp_path, model):
    result = look_at(model, write_rows(tmp_path / "a.csv", ["so good,good"] * 50))
    row = result.describe_row(0)
    assert row.twins == [*range(2, 22)]
    assert row.notes == [f"repeats {result.examples[1].place} and 48 more"]


def test_sentences_that_stand_twice_are_compared_by_their_entities(tmp_path, model):
    path = tmp_path / "a.conll"
    sentences = ["He\tO\nmet\tO\nBob\tB-person", "he\tO\nmet\tO\nbob\tO", "so\tO"]
    path.write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    result = look_at(model, path)
    (line,) = (line for line in result.lines if "He met Bob" in line)
    assert line.endswith("'He met Bob' is B-person, and O at line 5")
