"""What an index returns."""

from bertkit.retrieval.hits import Changes, Hit, IndexInfo, StoredDocument
from bertkit.retrieval.passages import Passage


def test_a_hit_of_a_file_is_shown_with_its_line_and_another_by_its_id():
    assert Hit("docs/a.txt", 1.0, "a", line=4, is_file=True).name == "docs/a.txt:4"
    assert Hit("17", 1.0, "a", line=4).name == "17"


def test_the_text_of_a_document_has_each_overlap_once():
    passages = [
        Passage(0, 1, "One. Two. "),
        Passage(5, 1, "Two. Three.\n\n"),
        Passage(18, 3, "4\n"),
    ]
    assert StoredDocument("1", {}, passages).text == "One. Two. Three.\n\n4\n"


def test_changes_are_described_without_those_that_are_none():
    assert not Changes(unchanged=2)
    assert Changes().describe() == "nothing has changed"
    changes = Changes(added=1200, unchanged=2, passages=1300, embedded=1000, blank=1)
    assert changes
    assert changes.describe() == (
        "1,200 documents added, 2 documents unchanged; 1,300 passages, 1,000 embedded"
    )


def test_info_is_shown_legibly():
    info = IndexInfo(2, 3, 1, "m\x1b", "fp32", 384, "cosine", "t", 2_500_000, {"la\nng": 2}, "")
    shown = info.describe()
    assert "\x1b" not in shown
    assert "la ng (2)" in shown
    assert "2.5 MB" in shown
