"""What is read of long texts and pairs."""

import pytest
import torch
from pydantic import ValidationError
from tests.unit.tasks.small import TOKENIZER

from bertkit.tasks.batch import Encoded, TaskBatch
from bertkit.tasks.long_texts import encode_texts, pool_windows
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.texts import Texts

LONG = "the a cat dog fox saw lost hat not the a cat"  # 12 tokens
PAIRS = [("the cat", "a dog"), (LONG, "fox"), ("fox", LONG), (LONG, LONG), ("", ""), ("", LONG)]


def read(settings: TextSettings, *texts: str):
    (reading,) = encode_texts([Texts(*texts)], settings, TOKENIZER)
    shown = [
        " ".join(TOKENIZER.vocabulary[id_] for id_ in sequence.ids)
        for sequence in reading.sequences
    ]
    return shown, reading.is_cut


@pytest.mark.parametrize("max_length", [3, 4, 8, 11, 64])
def test_the_beginning_is_what_the_tokenizer_keeps(max_length):
    settings = TextSettings(max_length=max_length)
    texts = [Texts(*pair) for pair in PAIRS] + [Texts(LONG), Texts(""), Texts("cats[SEP] \ud800")]
    for each, reading in zip(texts, encode_texts(texts, settings, TOKENIZER), strict=True):
        whole = TOKENIZER.encode(*each)
        encoding = TOKENIZER.encode(*each, max_length=max_length)
        (sequence,) = reading.sequences
        assert (sequence.ids, sequence.segments) == (encoding.ids, encoding.token_type_ids)
        assert reading.is_cut == (len(whole.ids) > len(encoding.ids))


def test_the_end_and_both_ends():
    tail = TextSettings(max_length=6, long_texts="tail")
    assert read(tail, LONG) == (["[CLS] not the a cat [SEP]"], True)
    assert read(tail, "fox", LONG) == (["[CLS] fox [SEP] a cat [SEP]"], True)
    both = TextSettings(max_length=10, long_texts="head_tail")
    assert read(both, LONG) == (["[CLS] the a lost hat not the a cat [SEP]"], True)
    assert read(both, "fox saw", LONG) == (["[CLS] fox saw [SEP] the not the a cat [SEP]"], True)
    assert read(both, "the cat") == (["[CLS] the cat [SEP]"], False)


def test_windows_overlap_and_leave_nothing_out():
    settings = TextSettings(max_length=8, long_texts="windows")
    shown, is_cut = read(settings, LONG)
    assert shown == [
        "[CLS] the a cat dog fox saw [SEP]",
        "[CLS] dog fox saw lost hat not [SEP]",
        "[CLS] lost hat not the a cat [SEP]",
    ]
    assert not is_cut
    assert read(settings, "the cat") == (["[CLS] the cat [SEP]"], False)
    wide, _ = read(settings.model_copy(update={"stride": 100}), LONG)
    assert len(wide) == 2  # never past what a window holds
    few = read(settings.model_copy(update={"max_windows": 2}), LONG)
    assert few == (shown[:2], True)


@pytest.mark.parametrize("number", range(1, 14))
@pytest.mark.parametrize("stride", [1, 2, 5, None])
def test_every_token_is_in_a_window(number, stride):
    words = [TOKENIZER.vocabulary[5 + index % 8] for index in range(number)]
    settings = TextSettings(max_length=9, long_texts="windows", stride=stride)
    for texts, before in (((" ".join(words),), 1), (("fox", " ".join(words)), 3)):
        (reading,) = encode_texts([Texts(*texts)], settings, TOKENIZER)
        whole = TOKENIZER.encode(*texts).ids[before:-1]
        parts = [sequence.ids[before:-1] for sequence in reading.sequences]
        assert all(len(sequence.ids) <= 9 for sequence in reading.sequences)
        step = min(9 - before - 1, stride or (9 - before - 1) // 2)
        joined = parts[0][:]
        for place, part in enumerate(parts[1:], start=1):
            joined[place * step :] = part
        assert joined == whole
        assert not reading.is_cut


def test_of_a_pair_the_longer_text_is_read_in_windows():
    settings = TextSettings(max_length=8, long_texts="windows", stride=4)
    shown, is_cut = read(settings, "fox", LONG)
    assert shown == [
        "[CLS] fox [SEP] the a cat dog [SEP]",
        "[CLS] fox [SEP] fox saw lost hat [SEP]",
        "[CLS] fox [SEP] not the a cat [SEP]",
    ]
    assert not is_cut
    shown, is_cut = read(settings, LONG, LONG)
    assert is_cut
    assert shown[0] == "[CLS] the a cat [SEP] the a [SEP]"
    assert shown[-1].endswith("the a cat [SEP] the a [SEP]")


def test_windows_of_an_example_are_one_row():
    settings = TextSettings(max_length=8, long_texts="windows")
    texts = [Texts("the cat"), Texts(LONG), Texts("fox")]
    encoded = [
        Encoded(reading.sequences, labels=torch.zeros(1).numpy())
        for reading in encode_texts(texts, settings, TOKENIZER)
    ]
    batch = TaskBatch.collate(encoded, range(3))
    logits = torch.arange(10.0, dtype=torch.bfloat16).view(5, 2)
    assert pool_windows(logits, batch).tolist() == [[0, 1], [4, 5], [8, 9]]
    assert pool_windows(logits, batch).dtype == torch.float32
    single = TaskBatch.collate([encoded[0], encoded[2]], range(2))
    assert pool_windows(logits[:2].double(), single).dtype == torch.float64


def test_windows_need_room():
    with pytest.raises(ValidationError, match="must be at least 8 for windows"):
        TextSettings(max_length=7, long_texts="windows")
