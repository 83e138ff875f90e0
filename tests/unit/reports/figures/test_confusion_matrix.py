"""Confusion matrices: the right counts in the right cells, whatever the labels are called."""

from xml.etree import ElementTree as ET

import pytest

from bertkit.base.errors import InputError
from bertkit.reports.figures.confusion_matrix import (
    MAX_LABELS,
    MAX_PAIRS,
    Confusion,
    ConfusionMatrix,
    most_confused,
)

NAMES = ["dog", "cat", "hen"]
COUNTS = [[8, 2, 0], [5, 4, 1], [0, 0, 0]]


def pairs(rows: list[list[int]]) -> dict[tuple[int, int], int]:
    """The cells that aren't 0."""
    return {
        (true, predicted): count
        for true, row in enumerate(rows)
        for predicted, count in enumerate(row)
        if count
    }


def draw(names, rows) -> ET.Element:
    return ET.fromstring(ConfusionMatrix("Animals", names, pairs(rows)).draw())


def words(svg: ET.Element) -> list[str]:
    return [text.text for text in svg.iter("text")]


def shades(svg: ET.Element) -> list[tuple]:
    return [
        (box.get("class"), float(box.get("x")), float(box.get("y")), box.get("fill-opacity"))
        for box in svg.iter("rect")
        if box.get("fill-opacity")
    ]


def diagonal(num_labels: int) -> list[list[int]]:
    return [[7 * (row == column) for column in range(num_labels)] for row in range(num_labels)]


def test_rows_are_true_and_columns_predicted():
    svg = draw(NAMES, COUNTS)
    (right, x, y, opacity), (wrong, next_x, next_y, _), (_, last_x, below, half) = shades(svg)[:3]
    assert (right, wrong) == ("right", "wrong")
    assert (next_x > x, next_y == y) == (True, True)  # dog taken for cat: to the right of dog
    assert (last_x == x, below > y) == (True, True)  # cat taken for dog: under it
    assert (opacity, half) == ("0.894", "0.707")  # roots of 8/10 and 5/10
    assert words(svg)[:2] == ["predicted", "true"]
    titles = [title.text for title in svg.iter("title")]
    assert titles[0] == "Animals"
    assert "dog predicted as cat: 2 (20.0 %)" in titles
    assert "cat predicted as dog: 5 (50.0 %)" in titles


def test_every_count_of_few_labels_is_written_with_its_share():
    shown = words(draw(NAMES, COUNTS))
    assert [word for word in shown if word.isdigit()] == list("820541000")
    assert [word for word in shown if "%" in word] == [
        f"{share} %"
        for share in (80, 20, 0, 50, 40, 10)  # nothing is a share of no example
    ]
    assert words(draw([], [])) == ["no data yet"]
    assert words(draw(["only"], [[3]])) == ["predicted", "true", "only", "only", "3", "100 %"]
    assert shades(draw(["a", "b"], [[0, 0], [0, 0]])) == []


def test_all_is_within_the_drawing():
    for names in (NAMES, ["a" * 100] * 3, ["a" * 100] * MAX_LABELS, ["漢" * 50] * 9, ["x"]):
        svg = draw(names, diagonal(len(names)))
        width, height = map(float, svg.get("viewBox").split()[2:])
        for box in svg.iter("rect"):
            assert float(box.get("x")) + float(box.get("width")) <= width
            assert float(box.get("y")) + float(box.get("height")) <= height


def test_the_most_confused_pairs_come_first_and_ties_in_the_order_of_the_labels():
    assert most_confused(pairs(COUNTS), NAMES, 2) == [
        Confusion("cat", "dog", 5, 0.5),
        Confusion("dog", "cat", 2, 0.2),
    ]
    assert [each.count for each in most_confused(pairs(COUNTS), NAMES, 99)] == [5, 2, 1]
    tied = most_confused(pairs([[0, 1, 1], [1, 0, 1], [1, 1, 0]]), NAMES, 9)
    assert [(each.true[0], each.predicted[0]) for each in tied] == [
        ("d", "c"), ("d", "h"), ("c", "d"), ("c", "h"), ("h", "d"), ("h", "c"),
    ]  # fmt: skip
    assert most_confused({}, [], 3) == []


def test_few_labels_are_tabulated_whole_and_many_by_pairs():
    columns, rows = ConfusionMatrix("Animals", NAMES, pairs(COUNTS)).tabulate()
    assert columns[1:] == NAMES
    assert rows == [["dog", 8, 2, 0], ["cat", 5, 4, 1], ["hen", 0, 0, 0]]
    names = [f"label {index}" for index in range(MAX_LABELS + 1)]
    counts = diagonal(len(names))
    counts[0][1] = 1
    many = ConfusionMatrix("Many", names, pairs(counts))
    assert many.draw() is None
    assert many.tabulate()[1] == [["label 0", "label 1", 1, "12.5 %"]]
    counts = {(7, label): label % 97 for label in range(50_000)}
    matrix = ConfusionMatrix("Many", [f"label {index}" for index in range(50_000)], counts)
    columns, rows = matrix.tabulate()
    assert (len(columns), len(rows)) == (4, MAX_PAIRS)
    assert rows[0][:3] == ["label 7", "label 96", 96]


@pytest.mark.parametrize(
    ("names", "counts", "words"),
    [
        (["a", "b"], {(0, 2): 1}, "of 2 labels can't count label 0 taken for label 2"),
        (["a", "b"], {(-1, 0): 1}, "can't count label -1 taken for label 0"),
        ([], {(0, 0): 1}, "of 0 labels"),
        (["a", "b"], {(0, 1): 3, (1, 0): -4}, "must be 0 or more, not -4"),
    ],
)
def test_counts_that_are_no_confusion_matrix_are_refused(names, counts, words):
    with pytest.raises(InputError, match=words):
        ConfusionMatrix("t", names, counts)


def test_counts_are_four_characters_at_most():
    counts = (0, 999, 1000, 1999, 9999, 10_000, 999_999, 1_000_000, 123_456_789)
    rows = diagonal(MAX_LABELS)
    for label, count in enumerate(counts):
        rows[label][label] = count
    shown = [word for word in words(draw(["x"] * MAX_LABELS, rows)) if word[:1].isdigit()]
    assert shown[: len(counts) - 1] == [
        "999", "1.0k", "1.9k", "9.9k", "10k", "999k", "1.0M", "123M",
    ]  # fmt: skip
