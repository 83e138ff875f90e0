"""One look at a table finds its encoding, its columns of texts and labels, or says what to do."""

import pytest

from bertkit.base.errors import InputError
from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import RecordSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.columns import find_column
from bertkit.tasks.labeled_table import check_columns, check_labels, find_text_columns
from bertkit.tasks.regress import RegressSettings

TEXTS = ["Sehr schöne Jacke, gute Qualität", "Die Größe fällt zu klein aus", "Gern wieder für mich"]
SHOP = [
    {
        "Nummer": str(1000 + n),
        "Datum": f"2026-0{1 + n % 3}-11",
        "Kommentar": f"{TEXTS[n % 3]} {n}",
        "Sterne": str(1 + n % 5),
    }
    for n in range(30)
]


def write_shop(path, rows=SHOP, encoding="cp1252"):
    """Write a file as a shop exports it, with semicolons."""
    lines = [";".join(rows[0]), *(";".join(row.values()) for row in rows)]
    path.write_bytes("\r\n".join(lines).encode(encoding))
    return path


def look(source, task=None, **settings):
    """Open a table; return it and its columns of text, pair and label."""
    table, task = open_records(source, RecordSettings(**settings)), task or ClassifySettings()
    check_columns(task, table, needs_answer=True)
    label = find_column(table, "label", task.label_column, task.usual_columns["label"])
    return (table, *find_text_columns(task, table), label)


def test_one_look_finds_encoding_separator_and_columns_and_says_so(tmp_path):
    table, *columns = look(write_shop(tmp_path / "shop.csv"))
    assert columns == ["Kommentar", None, "Sterne"]
    encoding, chosen = table.report.notes
    assert encoding == (
        "read as cp1252, since it isn't UTF-8, such as 'schöne'; --encoding names another"
    )
    assert chosen == (
        "the text is Kommentar, the only column of texts; the label is Sterne (1, 2, 3, …), the"
        " only column of few values that repeat; --text-column and --label-column name others"
    )
    assert next(table.records()).values["Kommentar"] == "Sehr schöne Jacke, gute Qualität 0"


def test_the_same_rows_from_python_have_the_same_columns():
    assert look(SHOP)[1:] == ("Kommentar", None, "Sterne")
    numbers = [{**row, "Sterne": int(row["Sterne"]) + 0.5} for row in SHOP]
    assert look(numbers, RegressSettings())[1:] == ("Kommentar", None, "Sterne")


def test_what_is_named_or_usual_is_taken_as_it_is():
    rows = [{**row, "Text": "x", "Label": "y"} for row in SHOP]
    table, *columns = look(rows)
    assert (columns, table.report.notes) == (["Text", None, "Label"], [])
    named = ClassifySettings(text_column="Datum", label_column="Nummer")
    table, *columns = look(SHOP, named)
    assert (columns, table.report.notes) == (["Datum", None, "Nummer"], [])
    table, *columns = look(SHOP, ClassifySettings(text_column="Nummer"))
    assert columns == ["Nummer", None, "Sterne"]
    assert len(table.report.notes) == 1
    with pytest.raises(InputError, match=r"no column Stern; name one .*: Nummer, Datum, Komm"):
        look(SHOP, ClassifySettings(label_column="Stern"))


def test_columns_that_could_both_be_it_are_one_error_with_flags():
    rows = [{**row, "Land": "DE" if n % 2 else "AT"} for n, row in enumerate(SHOP)]
    rows = [{"Titel": f"ein kurzer Titel {n}", **row} for n, row in enumerate(rows)]
    with pytest.raises(InputError) as caught:
        look(rows)
    text = ["--text-column", "Kommentar"]
    both = [[*text, "--label-column", "Sterne"], [*text, "--label-column", "Land"]]
    assert caught.value.flags == both
    assert str(caught.value) == (
        "train: the text could be Kommentar or Titel; the label could be Sterne (1, 2, 3, …) or"
        " Land (AT, DE); choose with --text-column and --label-column of Titel, Nummer, Datum,"
        " Kommentar, Sterne, Land"
    )
    with pytest.raises(InputError, match="the text is Kommentar; no column of few") as one:
        look([{**row, "Sterne": row["Nummer"]} for row in SHOP])
    assert one.value.flags == ()


@pytest.mark.parametrize(
    "rows",
    [
        [{"Nummer": row["Nummer"], "Datum": row["Datum"]} for row in SHOP],
        [{"a good film, all in all": f"a text of words {n}", "pos": "pos"} for n in range(30)],
        [{"good film": f"a text of words {n}", "pos": ("pos", "neg")[n % 2]} for n in range(30)],
    ],
    ids=["no text", "a sentence as a name", "a label as a name"],
)
def test_nothing_is_guessed_where_no_column_fits_or_the_first_row_is_data(rows):
    with pytest.raises(InputError, match=r"has no column for the text.*--text-column: "):
        look(rows)


def test_several_labels_in_a_cell_are_few_values():
    kinds = ("ja", "nein", "ja,nein", "nein,ja", "ja, nein, egal")
    rows = [{**row, "Sterne": kinds[n % 5]} for n, row in enumerate(SHOP)]
    assert look(rows, ClassifySettings(multi_label=True))[-1] == "Sterne"


def test_a_name_that_says_it_is_taken_and_what_a_review_added_is_not():
    rows = [{**row, "Kategorie": "ab"[n % 2], "likely": "a"} for n, row in enumerate(SHOP)]
    found = dict.fromkeys(
        ("looks_wrong", "probability", "suspicion", "notes"), "ein Text wie andere"
    )
    table, *columns = look([{**row, **found} for row in rows])
    assert columns == ["Kommentar", None, "Kategorie"]
    assert "the only column of few values that repeat with such a name" in table.report.notes[0]


def test_lists_of_labels_are_told_with_the_command_that_reads_them():
    rows = [
        {"body": row["Kommentar"], "tags": ["a", "b"][: 1 + n % 2]} for n, row in enumerate(SHOP)
    ]
    table = look(rows)[0]
    with pytest.raises(InputError, match="tags has lists of labels, which --multi-label") as caught:
        check_labels(ClassifySettings(), table)
    assert caught.value.flags == (("--label-column", "tags", "--multi-label"),)
    check_labels(ClassifySettings(multi_label=True), table)
