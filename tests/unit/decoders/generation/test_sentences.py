"""The sentences that a summary may have: where they stand, and which of them have a meaning."""

from hypothesis import given
from hypothesis import strategies as st

from bertkit.decoders.generation.sentences import Candidates, find_sentences


def read(text: str) -> list[str]:
    return [" ".join(text[start:stop].split()) for start, stop in find_sentences(text)]


def test_wrapped_lines_are_one_sentence_and_others_are_not():
    wrapped = (
        "The storm came in the night and closed\n"
        "the port. Two ships that had been to\n"
        "Newfoundland are missing still.\n"
        "\n"
        "Ports\n"
        "The port of the town is the greatest.\n"
    )
    assert read(wrapped) == [
        "The storm came in the night and closed the port.",
        "Two ships that had been to Newfoundland are missing still.",
        "Ports",
        "The port of the town is the greatest.",
    ]
    assert read("A title\r\nThe first line is one paragraph. It has two.\r\nThe second.\r\n") == [
        "A title",
        "The first line is one paragraph.",
        "It has two.",
        "The second.",
    ]


def test_a_line_that_begins_small_goes_on_with_the_one_before():
    assert read("A cat sat\non the mat. It slept.") == ["A cat sat on the mat.", "It slept."]
    assert read("A cat sat\nOn the mat. It slept.")[0] == "A cat sat"


def test_abbreviations_end_no_sentence_also_at_the_end_of_a_line():
    assert read("It was said by all in the town that Dr.\nSmith had been there. He left.") == [
        "It was said by all in the town that Dr. Smith had been there.",
        "He left.",
    ]


def test_what_a_summary_can_have():
    text = "Weather report\n\nIt rained. * * *\n12.5 13.1.\nIt snowed."
    found = Candidates.find(text, "en")
    assert found.sentences == ("It rained.", "It snowed.")
    assert [text[start:stop] for start, stop in found.spans] == list(found.sentences)
    assert found.num_sentences > len(found) == 2
    assert [read(text)[number - 1] for number in found.numbers] == list(found.sentences)


def test_without_ends_all_with_letters_can_be_taken():
    assert Candidates.find("the cat\nA dog\n---", "en").sentences == ("the cat", "A dog")


def test_a_heading_without_blanks_stands_alone_and_wrapped_lines_go_on():
    paragraph = (
        "昨日の夜に嵐が来て、港は閉ざされたままで、二隻の船がまだ見つかっていないという。" * 2
    )
    assert read(f"港の天気\n{paragraph}\n")[0] == "港の天気"
    wrapped = f"{paragraph[:44]}\n{paragraph[44:]}\n"
    assert [one.replace(" ", "") for one in read(wrapped)] == [paragraph[:40]] * 2


def test_a_stretch_without_an_end_is_cut():
    text = "word " * 10_000
    spans = find_sentences(text)
    assert len(spans) > 1
    assert max(stop - start for start, stop in spans) <= 8_000
    assert "".join(text[start:stop] for start, stop in spans).replace(" ", "") == "word" * 10_000


@given(st.text(alphabet=st.sampled_from('aB1. !?\n\r\u2028"(é。\ud800\x0c'), max_size=80))
def test_no_letter_is_lost(text):
    spans = find_sentences(text)
    ends = [0, *(end for span in spans for end in span), len(text)]
    assert ends == sorted(ends)
    between = zip(ends[::2], ends[1::2], strict=True)
    assert all(not text[start:stop].strip() for start, stop in between)
