"""Cutting paragraphs into sentences: right on what matters, quick on anything."""

import pytest
from tests.waiting import little_computing

from bertkit.data.sentences import PIECE_LIMIT_CHARACTERS, ends_like_a_sentence, split_sentences

SIZE = 200_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing. Another thing.", ["One thing.", "Another thing."]),
        ("Mr. Darcy bowed. She didn't.", ["Mr. Darcy bowed.", "She didn't."]),
        ("It cost 3.50 pounds. Too much!", ["It cost 3.50 pounds.", "Too much!"]),
        ("  spaces around.  ", ["spaces around."]),
        ("no end", ["no end"]),
        ("人人生而自由。在尊严！他们", ["人人生而自由。", "在尊严！", "他们"]),
        ("すべての人間は自由だ。「そうか。」", ["すべての人間は自由だ。", "「そうか。」"]),
        ("เด็กเดินไป แล้วกลับบ้าน in 2024 ok", ["เด็กเดินไป", "แล้วกลับบ้าน in 2024 ok"]),
        ("The word เด็ก บ้าน is Thai.", ["The word เด็ก บ้าน is Thai."]),
        ("", []),
        (" \t ", []),
    ],
)
def test_sentences(text, expected):
    assert split_sentences(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "word " * (SIZE // 5),
        "." * SIZE,
        '"' * SIZE,
        "(" * SIZE,
        "“(" * (SIZE // 2),
        "a." * (SIZE // 2),
        "! " * (SIZE // 2),
        "x" * SIZE,
    ],
    ids=["words", "stops", "quotes", "brackets", "both", "letters", "shouts", "one word"],
)
def test_two_hundred_kilobytes_of_anything_takes_little_time_and_loses_nothing(text):
    with little_computing():
        sentences = split_sentences(text)
    assert "".join(sentences).replace(" ", "") == text.replace(" ", "")


def test_a_long_paragraph_is_cut_between_words():
    text = "word " * PIECE_LIMIT_CHARACTERS
    words = {word for sentence in split_sentences(text) for word in sentence.split()}
    assert words == {"word"}


def test_a_long_paragraph_is_cut_after_a_sentence():
    sentence = "This is a sentence of a long paragraph."
    assert set(split_sentences(" ".join([sentence] * 1000))) == {sentence}


def test_another_language_has_its_own_abbreviations():
    text = "Das kostet z.B. fünf Euro. Das ist viel."
    assert split_sentences(text, "de") == ["Das kostet z.B. fünf Euro.", "Das ist viel."]


@pytest.mark.parametrize(
    "text",
    [
        "It sings.",
        "She said ‘yes, I will go.’",
        'He said "no!")',
        "And so on …",
        "Il dit : « Oui. »",
        "Er sagte: »Ja.«",
        "Երեխան գնաց գետի մոտ։",
        "ልጁ ወደ ወንዙ ሄደ።",
        "彼は「はい。」",
        "बच्चा नदी के पास गया।",
        "کیا وہ آیا؟",
        "ကလေးသည် မြစ်သို့ သွားသည်။",
        "ក្មេងទៅទន្លេ។",
        "ཁོ་ཆུ་འགྲམ་ལ་སོང༌།",
        "เด็กไปที่แม่น้ำ",
        "เด็กไปที่แม่น้ำ พ.ศ. 2540 (NASA)",
        "ເດັກໄປແມ່ນ້ຳ",
    ],
)
def test_a_sentence_is_known_by_its_end(text):
    assert ends_like_a_sentence(text)


@pytest.mark.parametrize(
    "text",
    ["", '"', "A heading", "A list:", "A wren (bird)", "Bangkok (กรุงเทพ)", "1.5 km", "“A title”"],
)
def test_what_has_no_end_is_no_sentence(text):
    assert not ends_like_a_sentence(text)
