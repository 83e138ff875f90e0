"""Words are counted and cut in any script."""

import pytest

from bertkit.tokenization.words import count_words, cut_words, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("今天天气很好，我们去公园。", "今 天 天 气 很 好 我 们 去 公 园"),
        ("𠀀a2个GPT", "𠀀 a2 个 gpt"),
        ("東京タワーが人々", "東 京 タ ワ ー が 人 々"),
        ("葛\U000e0100か\u3099", "葛\U000e0100 か\u3099"),  # marks stay on what they stand on
        ("ที่นี่ดี", "ที่ นี่ ดี"),
        ("ຂ້ອຍ", "ຂ້ ອ ຍ"),
        ("ភាសា", "ភា សា"),
        ("မြန်မာ", "မြ န် မာ"),
        ("한국어 문장", "한국어 문장"),
    ],
)
def test_characters_are_words_where_none_stand_between_blanks(text, words):
    assert split_words(text) == words.split()


@pytest.mark.parametrize(
    ("text", "number", "words"),
    [
        ("It's a  cat,\nisn't it?", 5, ["It's", "It's a", "It's a cat,", "It's a cat, isn't"]),
        ("今天，很好。", 4, ["今", "今天，", "今天，很"]),
        ("「GPT-4」は 新", 3, ["「GPT-4」", "「GPT-4」は", "「GPT-4」は 新"]),
        ("한국어 문장", 2, ["한국어"]),
        (" ", 0, ["", ""]),
    ],
)
def test_beginnings_are_as_they_are_written(text, number, words):
    assert count_words(text) == number
    assert [cut_words(text, count) for count in range(1, len(words) + 1)] == words
    assert cut_words(text, 9) == " ".join(text.split())
    assert cut_words(text, 0) == ""
